"""OffsetFetch (9), versions 1 to 10: the committed offsets of groups.

Topics `null` (from version 2) means all partitions with a committed offset. From version 7 a client may require stable
offsets (KIP-447): a partition with an offset in an open transaction gets UNSTABLE_OFFSET_COMMIT. From version 8 a
request may have several groups (KIP-709), from 9 a member sends its epoch (KIP-848), from 10 topics go by id.
A broker that may have been replaced as coordinator does not respond to a request for stable offsets
(`coordinators.group.doubt`). A partition without an offset gets -1 and no error, also if its topic does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import respond_in_turns, sliced
from ixion.apis.topic_ids import OFFSET_FETCH_BY_ID_SINCE
from ixion.coordinators.group.offsets import NO_OFFSET, Committed
from ixion.coordinators.group.stored_offsets import Found, OffsetReader
from ixion.metadata.image import ClusterImage
from ixion.model.errors import ErrorCode
from ixion.model.topic_partition import TopicPartition
from ixion.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps, map_steps
from ixion.wire.answer import LATER, Later

SEVERAL_GROUPS_FROM: Final = 8
GROUP_CODE_FROM: Final = 2


def make(services: Services) -> Handle:
    groups_here = services.groups
    offsets, doubt = groups_here.offsets, groups_here.doubt
    image = services.image

    def fetch(
        reader: OffsetReader, partitions: list[TopicPartition] | None, require_stable: bool, doubtful: frozenset[int]
    ) -> Steps[list[Found] | ErrorCode]:
        if doubtful and groups_here.shards.partition_for(reader.group_id) in doubtful:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return (yield from offsets.fetch(reader, partitions, require_stable=require_stable))

    def one(request: OffsetFetchRequest, version: int, doubtful: frozenset[int]) -> Steps[OffsetFetchResponse]:
        """The form of versions 1 to 7."""
        wanted = None if request.topics is None else [(each.name, each.partition_indexes) for each in request.topics]
        partitions = yield from _flat(wanted)
        reader = OffsetReader(request.group_id)
        found = yield from fetch(reader, partitions, request.require_stable, doubtful)
        code = ErrorCode.NONE
        if isinstance(found, ErrorCode):
            code = found
            # Version 1 has no field for the group's code: every partition gets it.
            found = [] if version >= GROUP_CODE_FROM else [(each, None, code) for each in partitions or ()]
        topics: dict[str, list[OffsetFetchResponsePartition]] = {}
        for (name, partition), committed, its_code in found:
            offset, leader_epoch, metadata = _told(committed)
            topics.setdefault(name, []).append(
                OffsetFetchResponsePartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    metadata=metadata,
                    error_code=its_code,
                )
            )
            yield
        answered: list[OffsetFetchResponseTopic] = []
        for name, lines in topics.items():
            answered.append(OffsetFetchResponseTopic(name=name, partitions=tuple(lines)))
            yield
        return OffsetFetchResponse(error_code=code, topics=tuple(answered))

    def of_group(
        group: OffsetFetchRequestGroup, by_id: bool, require_stable: bool, doubtful: frozenset[int]
    ) -> Steps[OffsetFetchResponseGroup]:
        ids: dict[str, bytes] = {}
        unknown: list[OffsetFetchResponseTopics] = []
        wanted: list[tuple[str, tuple[int, ...]]] | None = None if group.topics is None else []
        for topic in group.topics or ():
            assert wanted is not None
            if not by_id:
                wanted.append((topic.name, topic.partition_indexes))
            elif topic.topic_id in image.ids:
                name = image.ids[topic.topic_id].name
                ids[name] = topic.topic_id
                wanted.append((name, topic.partition_indexes))
            else:
                lines = yield from map_steps(_unknown, topic.partition_indexes)
                unknown.append(_topic("", topic.topic_id, lines))
            yield
        reader = OffsetReader(group.group_id, group.member_id, group.member_epoch)
        partitions = yield from _flat(wanted)
        found = yield from fetch(reader, partitions, require_stable, doubtful)
        if isinstance(found, ErrorCode):
            return OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=found)
        topics: dict[str, list[OffsetFetchResponsePartitions]] = {}
        for (name, partition), committed, code in found:
            topics.setdefault(name, []).append(_partition(partition, committed, code))
            yield
        known: list[OffsetFetchResponseTopics] = []
        for name, lines in topics.items():
            if not by_id or name in image.topics:  # a deleted topic has no id
                known.append(_topic(name, ids.get(name) or _id_of(image, name), lines))
            yield
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=tuple(known + unknown))

    def answer(call: Call, doubtful: frozenset[int]) -> Steps[OffsetFetchResponse]:
        request, version = cast(OffsetFetchRequest, call.body), call.version
        if version < SEVERAL_GROUPS_FROM:
            return (yield from one(request, version, doubtful))
        by_id = version >= OFFSET_FETCH_BY_ID_SINCE
        groups: list[OffsetFetchResponseGroup] = []
        for group in request.groups:
            groups.append((yield from of_group(group, by_id, request.require_stable, doubtful)))
            yield
        return OffsetFetchResponse(groups=tuple(groups))

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(OffsetFetchRequest, call.body)
        if request.require_stable:
            several = call.version >= SEVERAL_GROUPS_FROM
            asked = [each.group_id for each in request.groups] if several else [request.group_id]
            doubtful = doubt.partitions(asked)
            if doubtful:
                call.on_gone(doubt.resolve(doubtful, lambda left: respond_in_turns(call, answer(call, left))))
                return LATER
        return (yield from answer(call, frozenset()))

    return sliced(handle)


def _flat(topics: Iterable[tuple[str, tuple[int, ...]]] | None) -> Steps[list[TopicPartition] | None]:
    if topics is None:
        return None
    flat: list[TopicPartition] = []
    for name, partitions in topics:
        for partition in partitions:
            flat.append((name, partition))
            yield
        yield
    return flat


def _told(committed: Committed | None) -> tuple[int, int, str]:
    return (NO_OFFSET, -1, "") if committed is None else (committed.offset, committed.leader_epoch, committed.metadata)


def _partition(number: int, committed: Committed | None, code: ErrorCode) -> OffsetFetchResponsePartitions:
    offset, leader_epoch, metadata = _told(committed)
    return OffsetFetchResponsePartitions(
        partition_index=number,
        committed_offset=offset,
        committed_leader_epoch=leader_epoch,
        metadata=metadata,
        error_code=code,
    )


def _unknown(number: int) -> OffsetFetchResponsePartitions:
    return _partition(number, None, ErrorCode.UNKNOWN_TOPIC_ID)


def _topic(name: str, topic_id: bytes, partitions: list[OffsetFetchResponsePartitions]) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=tuple(partitions))


def _id_of(image: ClusterImage, name: str) -> bytes:
    topic = image.topics.get(name)
    return bytes(16) if topic is None else topic.topic_id
