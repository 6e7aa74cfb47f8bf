"""DeleteRecords, 0 to 2: records below an offset go; -1 is all that consumers can see.

The log start moves at once, the files follow when whole segments lie below it. Answered when every replica has moved
its log start, with the lowest of them, or after the timeout with REQUEST_TIMED_OUT. A topic that is only compacted
refuses (POLICY_VIOLATION), because compaction alone decides what it keeps; so do internal topics.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ixion.replica.delayed_delete_records import DeletionResult
from ixion.replica.internal_topic import INTERNAL
from ixion.wire.answer import LATER, Later


def make(services: Services) -> Handle:
    replicas = services.replicas

    def handle(call: Call) -> Later:
        request = cast(DeleteRecordsRequest, call.body)
        wanted = {
            (topic.name, each.partition_index): each.offset
            for topic in request.topics
            if topic.name not in INTERNAL
            for each in topic.partitions
        }

        def respond(results: list[DeletionResult]) -> None:
            call.respond(answer(request, {(each.topic, each.number): each for each in results}))

        offsets = [(topic, number, offset) for (topic, number), offset in wanted.items()]
        replicas.delete(request.timeout_ms, offsets, respond)
        return LATER

    return handle


def answer(request: DeleteRecordsRequest, results: dict[tuple[str, int], DeletionResult]) -> DeleteRecordsResponse:
    topics = []
    for topic in request.topics:
        partitions = []
        for number in dict.fromkeys(each.partition_index for each in topic.partitions):
            result = results.get((topic.name, number))
            partitions.append(
                DeleteRecordsPartitionResult(
                    partition_index=number,
                    low_watermark=-1 if result is None else result.low_watermark,
                    error_code=ErrorCode.INVALID_TOPIC_EXCEPTION if result is None else result.code,
                )
            )
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=tuple(partitions)))
    return DeleteRecordsResponse(throttle_time_ms=0, topics=tuple(topics))
