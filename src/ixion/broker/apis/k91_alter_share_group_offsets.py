"""AlterShareGroupOffsets (91), version 0: set the start offsets of a share group without members (KIP-932).

Records in flight are forgotten: everything from the new start on is delivered again. An unknown group is made; one
with members gets NON_EMPTY_GROUP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import GROUP, READ, TOPIC
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, trim_topics
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k91_alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("topic_name", partitions=once("partition_index"))}


def make(services: Services) -> Handle:
    offsets = services.groups.share_offsets
    image = services.image

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(AlterShareGroupOffsetsRequest, call.body)
        code = offsets.check_empty(request.group_id, may_be_new=True)
        if code:
            return refused(code)
        wanted: list[tuple[str, int, int]] = []
        for topic in request.topics:
            for each in topic.partitions:
                wanted.append((topic.topic_name, each.partition_index, each.start_offset))
                yield
            yield

        def altered(codes: list[ErrorCode]) -> None:
            respond_in_turns(call, answer(request, codes))

        offsets.alter(request.group_id, wanted, altered)
        return LATER

    def answer(request: AlterShareGroupOffsetsRequest, codes: list[ErrorCode]) -> Steps[Struct]:
        found = iter(codes)  # in the order of the request
        topics: list[AlterShareGroupOffsetsResponseTopic] = []
        for topic in request.topics:
            partitions: list[AlterShareGroupOffsetsResponsePartition] = []
            for each in topic.partitions:
                partitions.append(
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=each.partition_index, error_code=next(found)
                    )
                )
                yield
            known = image.topics.get(topic.topic_name)
            topics.append(
                AlterShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    topic_id=ZERO_ID if known is None else known.topic_id,
                    partitions=tuple(partitions),
                )
            )
            yield
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.NONE, responses=tuple(topics))

    return handle


def refused(code: ErrorCode) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=code, error_message=code.explanation, responses=())


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """READ on the group and on each topic."""
    request = cast(AlterShareGroupOffsetsRequest, call.body)
    if not rights.may(READ, GROUP, request.group_id):
        return AlterShareGroupOffsetsResponse(error_code=NO_GROUP, error_message=NO_GROUP.explanation, responses=())
    yield from trim_topics(
        call,
        lambda topic: rights.may(READ, TOPIC, topic.topic_name),
        lambda each: AlterShareGroupOffsetsResponsePartition(partition_index=each.partition_index, error_code=NO_TOPIC),
        lambda topic, lines: AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, topic_id=ZERO_ID, partitions=lines
        ),
        answered="responses",
    )
    return None


RIGHTS: Final = guard
