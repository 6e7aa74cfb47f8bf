"""OffsetDelete (47), version 0: delete committed offsets of a group (KIP-496).

Offsets of topics to which a member is subscribed are not deleted. If the group has members that are not consumers, no
offset is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DELETE, GROUP, READ, TOPIC
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, trim_topics
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("name", partitions=once("partition_index"))}


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

    return handle


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


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DELETE on the group, READ on each topic."""
    request = cast(OffsetDeleteRequest, call.body)
    if not rights.may(DELETE, GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=NO_GROUP, topics=())
    yield from trim_topics(
        call,
        lambda topic: rights.may(READ, TOPIC, topic.name),
        lambda each: OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=NO_TOPIC),
        lambda topic, lines: OffsetDeleteResponseTopic(name=topic.name, partitions=lines),
    )
    return None


RIGHTS: Final = guard
