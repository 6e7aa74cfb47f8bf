"""OffsetDelete (47), version 0: delete committed offsets of a group (KIP-496).

Offsets of topics to which a member is subscribed are not deleted. If the group has members that are not consumers, no
offset is deleted.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import respond_in_turns, sliced
from ixion.model.errors import ErrorCode
from ixion.model.topic_partition import TopicPartition
from ixion.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps
from ixion.wire.answer import LATER, Later


def make(services: Services) -> Handle:
    offsets = services.groups.offsets
    image = services.image

    def exists(name: str, partition: int) -> bool:
        topic = image.topics.get(name)
        return topic is not None and 0 <= partition < len(topic.partitions)

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(OffsetDeleteRequest, call.body)
        there: list[TopicPartition] = []
        for topic in request.topics:
            for each in topic.partitions:
                if exists(topic.name, each.partition_index):
                    there.append((topic.name, each.partition_index))
                yield
            yield

        def deleted(code: ErrorCode, codes: list[ErrorCode]) -> None:
            if code is not ErrorCode.NONE:
                call.respond(OffsetDeleteResponse(error_code=code, topics=()))
                return
            respond_in_turns(call, answer(request, dict(zip(there, codes, strict=True))))

        offsets.delete(request.group_id, there, deleted)
        return LATER

    return sliced(handle)


def answer(request: OffsetDeleteRequest, codes: dict[TopicPartition, ErrorCode]) -> Steps[OffsetDeleteResponse]:
    """`codes` has only partitions that exist."""
    topics: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        partitions: list[OffsetDeleteResponsePartition] = []
        for each in topic.partitions:
            code = codes.get((topic.name, each.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            partitions.append(OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code))
            yield
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(partitions)))
        yield
    return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=tuple(topics))
