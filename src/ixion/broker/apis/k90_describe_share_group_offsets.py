"""DescribeShareGroupOffsets (90), versions 0 and 1: where share groups stand (KIP-932).

Version 1 has the lag (KIP-1226): what is behind the start offset and not finished. It is -1 where nothing was fetched
yet, or where another broker leads the partition. (Kafka's is negative if the start was set beyond the end; ours is 0.)
Null topics mean all that the group has.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP, TOPIC
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, refused_topics, sorted_out
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.group.share.offsets import StartOffset
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k90_describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

Lines = list[tuple[str, list[StartOffset]]]  # by topic


if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"groups": once("group_id", topics=once("topic_name", partitions=NUMBERS))}


def make(services: Services) -> Handle:
    offsets = services.groups.share_offsets
    image, replicas = services.image, services.replicas

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(DescribeShareGroupOffsetsRequest, call.body)
        found: list[tuple[str, ErrorCode, Lines]] = []
        left = 1

        def described(into: list[StartOffset], lines: Sequence[StartOffset]) -> None:
            into.extend(lines)
            finished()

        def finished() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                respond_in_turns(call, answer(found))

        for group in request.groups:
            lines: Lines = []
            known = offsets.known(group.group_id)
            if known is ErrorCode.GROUP_ID_NOT_FOUND:
                known = []  # as in Kafka
            code = known if isinstance(known, ErrorCode) else ErrorCode.NONE
            found.append((group.group_id, code, lines))
            if isinstance(known, ErrorCode):
                yield
                continue
            wanted: list[tuple[str, Sequence[int]]] = [(topic.name, numbers) for topic, numbers in known]
            if group.topics is not None:
                wanted = [(topic.topic_name, topic.partitions) for topic in group.topics]
            for name, numbers in wanted:
                into: list[StartOffset] = []
                lines.append((name, into))
                left += 1
                yield from offsets.describe(group.group_id, name, numbers, partial(described, into))
                yield
        finished()
        return LATER

    def answer(found: list[tuple[str, ErrorCode, Lines]]) -> Steps[Struct]:
        groups: list[DescribeShareGroupOffsetsResponseGroup] = []
        for group_id, code, lines in found:
            topics: list[DescribeShareGroupOffsetsResponseTopic] = []
            for name, starts in lines:
                topic = image.topics.get(name)
                partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
                for start in starts:
                    partitions.append(told(name, start))
                    yield
                topics.append(
                    DescribeShareGroupOffsetsResponseTopic(
                        topic_name=name,
                        topic_id=ZERO_ID if topic is None else topic.topic_id,
                        partitions=tuple(partitions),
                    )
                )
                yield
            groups.append(
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group_id,
                    topics=tuple(topics),
                    error_code=code,
                    error_message=code.explanation if code else None,
                )
            )
        return DescribeShareGroupOffsetsResponse(groups=tuple(groups))

    def told(name: str, start: StartOffset) -> DescribeShareGroupOffsetsResponsePartition:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=start.partition,
            start_offset=start.start,
            leader_epoch=start.leader_epoch,
            lag=lag(name, start),
            error_code=start.code,
        )

    def lag(name: str, start: StartOffset) -> int:
        partition = replicas.partition(name, start.partition)
        if partition is None or not partition.leads or start.start < 0 or start.complete_count < 0:
            return -1
        return max(partition.log.high_watermark - start.start - start.complete_count, 0)

    return handle


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the groups and topics. If all topics are requested, those without the right are left out."""
    request = cast(DescribeShareGroupOffsetsRequest, call.body)
    kept: list[DescribeShareGroupOffsetsRequestGroup] = []
    refused_groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    topics_of: dict[str, list[Struct]] = {}
    for group in request.groups:
        yield
        if not rights.may(DESCRIBE, GROUP, group.group_id):
            refused_groups.append(
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, topics=(), error_code=NO_GROUP, error_message=NO_GROUP.explanation
                )
            )
            continue
        if group.topics is not None:
            some, others = yield from sorted_out(
                group.topics, lambda topic: rights.may(DESCRIBE, TOPIC, topic.topic_name)
            )
            if others:
                topics_of[group.group_id] = yield from refused_topics(others, _undescribed, _undescribed_topic)
                group = group.replace(topics=tuple(some))
        kept.append(group)
    call.narrow(request.replace(groups=tuple(kept)))

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(DescribeShareGroupOffsetsResponse, body)
        groups: list[DescribeShareGroupOffsetsResponseGroup] = []
        for group in answer.groups:
            seen, _ = yield from sorted_out(group.topics, lambda topic: rights.sees(DESCRIBE, TOPIC, topic.topic_name))
            groups.append(group.replace(topics=(*seen, *topics_of.get(group.group_id, ()))))
        return answer.replace(groups=(*groups, *refused_groups))

    call.amend = amend
    return None


def _undescribed(number: int) -> Struct:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=number, start_offset=-1, leader_epoch=0, error_code=NO_TOPIC
    )


def _undescribed_topic(topic: Any, lines: tuple[Any, ...]) -> Struct:
    return DescribeShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, topic_id=ZERO_ID, partitions=lines)


RIGHTS: Final = guard
