"""DeleteRecords, 0 to 2: delete the records below an offset; -1 is the high watermark.

The log start moves at once; retention deletes segments that lie wholly below it. The response is sent when every
replica has moved its log start, with the lowest of them, or after the timeout with REQUEST_TIMED_OUT. A topic with only
the cleanup policy compact is refused (POLICY_VIOLATION). Internal topics are refused, and the logs in which delayed
records wait: their records would be lost (INVALID_TOPIC_EXCEPTION).
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import DELETE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_TOPIC, on_topics
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.replica.delayed_delete_records import DeletionResult
from ixion.broker.replica.internal_topic import INTERNAL
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

REPEATS: Final = {"topics": once("name", partitions=once("partition_index"))}
RIGHTS: Final = on_topics(
    DELETE,
    lambda wish: DeleteRecordsPartitionResult(
        partition_index=wish.partition_index, low_watermark=-1, error_code=NO_TOPIC
    ),
    lambda topic, lines: DeleteRecordsTopicResult(name=topic.name, partitions=lines),
)


def make(services: Services) -> Handle:
    replicas = services.replicas

    def handle(call: Call) -> Later:
        request = cast(DeleteRecordsRequest, call.body)
        lane = call.request.lane

        def delete(wanted: list[tuple[str, int, int]] | None, error: Exception | None) -> None:
            if wanted is None:
                fail(error)
            else:
                replicas.delete_records(request.timeout_ms, wanted, respond)

        def respond(results: list[DeletionResult]) -> None:
            lane.run(answer(request, results), finish)

        def finish(response: DeleteRecordsResponse | None, error: Exception | None) -> None:
            if response is None:
                fail(error)
            else:
                call.respond(response)

        def fail(error: Exception | None) -> None:
            if error is not None:
                call.request.fail(error)

        lane.run(wanted_of(request), delete)
        return LATER

    return handle


def is_refused(topic: str) -> bool:
    return topic in INTERNAL or is_sibling(topic)


def wanted_of(request: DeleteRecordsRequest) -> Steps[list[tuple[str, int, int]]]:
    wanted: list[tuple[str, int, int]] = []
    for topic in request.topics:
        if not is_refused(topic.name):
            for each in topic.partitions:
                wanted.append((topic.name, each.partition_index, each.offset))
                yield
    return wanted


def answer(request: DeleteRecordsRequest, results: list[DeletionResult]) -> Steps[DeleteRecordsResponse]:
    found = iter(results)  # in the order of the request
    topics = []
    for topic in request.topics:
        internal = is_refused(topic.name)
        partitions = []
        for each in topic.partitions:
            result = None if internal else next(found)
            partitions.append(
                DeleteRecordsPartitionResult(
                    partition_index=each.partition_index,
                    low_watermark=-1 if result is None else result.low_watermark,
                    error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if result is None else result.code,
                )
            )
            yield
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(partitions)))
    return DeleteRecordsResponse(topics=tuple(topics))
