"""CreatePartitions, 0 to 3: add partitions to topics, up to a new count; the count cannot be lowered.

The broker assigns the new partitions unless the request has an assignment. Existing records do not move, so new records
of a key may go to another partition. All topics of a request together may get at most as many partitions as the
controller creates at a time (otherwise POLICY_VIOLATION for all of them). From version 3 on, a topic above the quota on
changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599). Topics that are not done after the timeout of the request get
REQUEST_TIMED_OUT; at most one of them is still being changed then, the others are left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import ALTER, TOPIC
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import in_time, translated
from ixion.broker.apis.guards.shapes import NO_TOPIC, appended, sorted_out
from ixion.broker.apis.repeats import as_sent, twice
from ixion.broker.apis.services import Services
from ixion.broker.controller.planning import check_partitions_of_request
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Pauses, Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

# Assignments are in the order of the new partitions.
REPEATS: Final = {"topics": twice("name", assignments=as_sent(broker_ids=twice()))}


def make(services: Services) -> Handle:
    controller = services.controller
    image = services.image
    timer = services.timer

    async def handle(call: Call) -> CreatePartitionsResponse:
        request = cast(CreatePartitionsRequest, call.body)
        times: Counter[str] = Counter()
        wanted: dict[str, CreatePartitionsTopic] = {}
        pauses = Pauses()
        for topic in request.topics:
            times[topic.name] += 1
            wanted[topic.name] = topic
            await pauses.pause()
        answers: dict[str, KafkaError | None] = {}
        late: KafkaError | None = None

        async def grow_all() -> None:
            excess = too_many(wanted.values())
            for topic in wanted.values():
                await pauses.pause()
                if late is not None:
                    return
                try:
                    if excess is not None:
                        raise excess
                    if times[topic.name] > 1:
                        raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic is in the request more than once")
                    await translated(grow(call, topic, request.validate_only))
                except KafkaError as error:
                    answers[topic.name] = error
                else:
                    answers[topic.name] = None

        try:
            await in_time(timer, request.timeout_ms, grow_all())
        except KafkaError as error:
            late = error
        return CreatePartitionsResponse(results=tuple([result(name, answers.get(name, late)) for name in wanted]))

    def too_many(topics: Iterable[CreatePartitionsTopic]) -> KafkaError | None:
        known = image.topics
        try:
            check_partitions_of_request(
                topic.count - len(known[topic.name].partitions) for topic in topics if topic.name in known
            )
        except KafkaError as error:
            return error
        return None

    async def grow(call: Call, topic: CreatePartitionsTopic, validate_only: bool) -> None:
        assignment = None if topic.assignments is None else [tuple(each.broker_ids) for each in topic.assignments]
        await controller.topics.create_partitions(topic.name, topic.count, assignment, validate_only, call.charge)

    return handle


def result(name: str, fault: KafkaError | None) -> CreatePartitionsTopicResult:
    if fault is None:
        return CreatePartitionsTopicResult(name=name, error_code=ErrorCode.NONE, error_message=None)
    return CreatePartitionsTopicResult(name=name, error_code=fault.code, error_message=fault.message)


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(CreatePartitionsRequest, call.body)
    kept, others = yield from sorted_out(request.topics, lambda topic: rights.may(ALTER, TOPIC, topic.name))
    if others:
        call.narrow(request.replace(topics=tuple(kept)))
        refused = [
            CreatePartitionsTopicResult(name=name, error_code=NO_TOPIC, error_message=NO_TOPIC.explanation)
            for name in dict.fromkeys(topic.name for topic in others)
        ]
        call.amend = appended("results", refused)
    return None


RIGHTS: Final = guard
