"""Reads the records of streams groups back, in the order of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.member import StreamsMember
from ixion.broker.coordinators.group.streams.reconcile import Current
from ixion.broker.coordinators.group.streams.records import current_of, profile_of, target_of
from ixion.broker.coordinators.group.streams.topology import indexed
from ixion.language.protocol.storage import decode, decode_key
from ixion.language.protocol.stored import streams_group as table
from ixion.language.protocol.stored.record_types import RecordType
from ixion.timer.turns import finish

FindGroup = Callable[[str, bool], StreamsGroup | None]  # by id; True: make it if it is not there
Replay = Callable[[FindGroup, bytes, bytes | None], None]


def _epoch(find: FindGroup, key: bytes, value: bytes | None) -> None:
    """Its tombstone is the last record of a deleted group; the caller then drops the group."""
    named = decode_key(table.StreamsGroupMetadataKey, key)
    read = None if value is None else decode(table.StreamsGroupMetadataValue, value)
    group = find(named.group_id, read is not None)
    if group is None:
        return
    if read is None:
        group.dead = True
        return
    group.epoch, group.metadata_hash = read.epoch, read.metadata_hash
    group.validated_epoch = read.validated_topology_epoch
    group.config = tuple((each.key, each.value) for each in read.last_assignment_configs or ())


def _assignment_epoch(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.StreamsGroupTargetAssignmentMetadataKey, key)
    read = None if value is None else decode(table.StreamsGroupTargetAssignmentMetadataValue, value)
    group = find(named.group_id, read is not None)
    if group is not None:
        group.assignment_epoch = -1 if read is None else read.assignment_epoch
        group.assigned_ms = 0 if read is None else read.assignment_timestamp


def _topology(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.StreamsGroupTopologyKey, key)
    read = None if value is None else finish(indexed(decode(table.StreamsGroupTopologyValue, value)))
    group = find(named.group_id, read is not None)
    if group is not None:
        group.topology = read


def _member(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.StreamsGroupMemberMetadataKey, key)
    read = None if value is None else decode(table.StreamsGroupMemberMetadataValue, value)
    group = find(named.group_id, read is not None)
    if group is None:
        return
    if read is None:
        group.remove(named.member_id)
    else:
        member = group.members.get(named.member_id) or StreamsMember(member_id=named.member_id)
        group.put(member, profile_of(read))


def _target(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.StreamsGroupTargetAssignmentMemberKey, key)
    read = None if value is None else decode(table.StreamsGroupTargetAssignmentMemberValue, value)
    group = find(named.group_id, read is not None)
    if group is not None:
        group.set_target(named.member_id, None if read is None else target_of(read))


def _current(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.StreamsGroupCurrentMemberAssignmentKey, key)
    read = None if value is None else decode(table.StreamsGroupCurrentMemberAssignmentValue, value)
    group = find(named.group_id, read is not None)
    if group is None:
        return
    member = group.members.get(named.member_id)
    if member is None:
        if read is None:
            return
        member = StreamsMember(member_id=named.member_id)
        group.put(member, member.profile)
    group.move(member, Current() if read is None else current_of(read))


STREAMS_RECORDS: Final[dict[int, Replay]] = {
    RecordType.STREAMS_GROUP_METADATA: _epoch,
    RecordType.STREAMS_GROUP_MEMBER_METADATA: _member,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: _assignment_epoch,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: _target,
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current,
    RecordType.STREAMS_GROUP_TOPOLOGY: _topology,
}
