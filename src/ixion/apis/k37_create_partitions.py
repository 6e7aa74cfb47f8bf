"""CreatePartitions, 0 to 3: add partitions to topics, up to a new count; the count cannot be lowered.

The broker assigns the new partitions unless the request has an assignment. Existing records do not move, so new records
of a key may go to another partition. All topics of a request together may get at most as many partitions as the
controller creates at a time (otherwise POLICY_VIOLATION for all of them). From version 3 on, a topic above the quota on
changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.controller_calls import in_time
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.controller.planning import check_partitions_of_request
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ixion.timer.turns import Pauses


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
        results = []
        excess = too_many(wanted.values())
        for topic in wanted.values():
            await pauses.pause()
            code, message = ErrorCode.NONE, None
            try:
                if excess is not None:
                    raise excess
                if times[topic.name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic is in the request more than once")
                await in_time(timer, request.timeout_ms, grow(call, topic, request.validate_only))
            except KafkaError as error:
                code, message = error.code, error.message
            results.append(CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=message))
        return CreatePartitionsResponse(results=tuple(results))

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

    return in_own_task(handle)
