"""OffsetFetch (9), versions 1 to 10: the committed offsets of groups.

Topics `null` (from version 2) means all partitions with a committed offset. From version 7 a client may require stable
offsets (KIP-447): a partition with an offset in an open transaction gets UNSTABLE_OFFSET_COMMIT. From version 8 a
request may have several groups (KIP-709), from 9 a member sends its epoch (KIP-848), from 10 topics go by id.
A broker that may have been replaced as coordinator does not respond to a request for stable offsets
(`coordinators.group.doubt`). A partition without an offset gets -1 and no error, also if its topic does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, GROUP, TOPIC
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import Guard
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, Amend, filtered, refused_topics, sorted_out, trim_topics
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.apis.topic_ids import OFFSET_FETCH_BY_ID_SINCE
from ixion.broker.coordinators.group.offsets import NO_OFFSET, Committed
from ixion.broker.coordinators.group.stored_offsets import Found, OffsetReader
from ixion.broker.metadata.image import ClusterImage
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps, map_steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {
    "topics": once("name", partition_indexes=NUMBERS),
    "groups": once("group_id", topics=once("name", "topic_id", partition_indexes=NUMBERS)),
}

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

    return handle


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


SEVERAL_SINCE: Final = 8  # OffsetFetch: several groups

PARTITIONS: Final = "partition_indexes"


def make_guard(services: Services) -> Guard:
    """DESCRIBE on the groups and topics. If all topics are requested, those without the right are left out."""

    image = services.image

    def old(call: Call, rights: Rights, request: OffsetFetchRequest) -> Steps[Struct | None]:
        if not rights.may(DESCRIBE, GROUP, request.group_id):
            topics: list[Struct] = []
            if call.version < 2:  # the response has no code of its own
                topics = yield from refused_topics(request.topics or (), fetched(NO_GROUP), fetch_topic, PARTITIONS)
            return OffsetFetchResponse(
                topics=cast(tuple[OffsetFetchResponseTopic, ...], tuple(topics)), error_code=NO_GROUP
            )
        if request.topics is None:
            call.amend = filtered("topics", lambda topic: rights.sees(DESCRIBE, TOPIC, topic.name))
        else:
            yield from trim_topics(
                call, lambda topic: rights.may(DESCRIBE, TOPIC, topic.name), fetched(NO_TOPIC), fetch_topic, PARTITIONS
            )
        return None

    def sees(topic: Any, rights: Rights, by_id: bool) -> bool:
        name = topic.name
        if by_id:
            known = image.ids.get(topic.topic_id)
            if known is None:
                return True
            name = known.name
        return rights.may(DESCRIBE, TOPIC, name)

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        request = cast(OffsetFetchRequest, call.body)
        if call.version < SEVERAL_SINCE:
            return (yield from old(call, rights, request))
        by_id = call.version >= OFFSET_FETCH_BY_ID_SINCE
        kept: list[OffsetFetchRequestGroup] = []
        refused: list[OffsetFetchResponseGroup] = []
        topics_of: dict[str, list[Struct]] = {}
        for group in request.groups:
            yield
            if not rights.may(DESCRIBE, GROUP, group.group_id):
                refused.append(OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=NO_GROUP))
                continue
            if group.topics is not None:
                some, others = yield from sorted_out(group.topics, lambda topic: sees(topic, rights, by_id))
                if others:
                    lines = yield from refused_topics(others, fetched_many(NO_TOPIC), fetch_topics, PARTITIONS)
                    topics_of[group.group_id] = lines
                    group = group.replace(topics=tuple(some))
            kept.append(group)
        call.narrow(request.replace(groups=tuple(kept)))
        call.amend = with_refused(rights, request, topics_of, refused)
        return None

    return guard


def with_refused(
    rights: Rights,
    request: OffsetFetchRequest,
    topics_of: dict[str, list[Struct]],
    refused: list[OffsetFetchResponseGroup],
) -> Amend:
    all_topics = {group.group_id for group in request.groups if group.topics is None}

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(OffsetFetchResponse, body)
        groups: list[OffsetFetchResponseGroup] = []
        for group in answer.groups:
            yield
            if group.group_id in all_topics:
                shown, _ = yield from sorted_out(group.topics, lambda topic: rights.sees(DESCRIBE, TOPIC, topic.name))
                group = group.replace(topics=tuple(shown))
            elif group.group_id in topics_of and group.error_code == ErrorCode.NONE:
                group = group.replace(topics=(*group.topics, *topics_of[group.group_id]))
            groups.append(group)
        return answer.replace(groups=(*groups, *refused))

    return amend


def fetched(code: ErrorCode) -> Callable[[int], OffsetFetchResponsePartition]:
    return lambda number: OffsetFetchResponsePartition(
        partition_index=number, committed_offset=-1, metadata="", error_code=code
    )


def fetch_topic(topic: OffsetFetchRequestTopic, lines: tuple[OffsetFetchResponsePartition, ...]) -> Struct:
    return OffsetFetchResponseTopic(name=topic.name, partitions=lines)


def fetched_many(code: ErrorCode) -> Callable[[int], OffsetFetchResponsePartitions]:
    return lambda number: OffsetFetchResponsePartitions(
        partition_index=number, committed_offset=-1, metadata="", error_code=code
    )


def fetch_topics(topic: Any, lines: tuple[OffsetFetchResponsePartitions, ...]) -> Struct:
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=lines)
