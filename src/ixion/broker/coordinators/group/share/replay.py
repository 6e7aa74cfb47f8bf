"""Reads the records of share groups back, in the order of the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ixion.broker.coordinators.group.consumer.assignment import assignment_of
from ixion.broker.coordinators.group.share.group import KnownTopic, ShareGroup, ShareMember
from ixion.language.protocol.storage import decode, decode_key
from ixion.language.protocol.stored import share_group as table
from ixion.language.protocol.stored.record_types import RecordType

FindGroup = Callable[[str, bool], ShareGroup | None]  # by id; True: make it if it is not there
Replay = Callable[[FindGroup, bytes, bytes | None], None]


def _epoch(find: FindGroup, key: bytes, value: bytes | None) -> None:
    """Its tombstone is the last record of a deleted group; the caller then drops the group."""
    named = decode_key(table.ShareGroupMetadataKey, key)
    read = None if value is None else decode(table.ShareGroupMetadataValue, value)
    group = find(named.group_id, read is not None)
    if group is not None:
        if read is None:
            group.dead = True
        else:
            group.epoch, group.metadata_hash = read.epoch, read.metadata_hash


def _assignment_epoch(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.ShareGroupTargetAssignmentMetadataKey, key)
    read = None if value is None else decode(table.ShareGroupTargetAssignmentMetadataValue, value)
    group = find(named.group_id, read is not None)
    if group is not None:
        group.assignment_epoch = -1 if read is None else read.assignment_epoch
        group.assigned_ms = 0 if read is None else read.assignment_timestamp


def _member(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.ShareGroupMemberMetadataKey, key)
    read = None if value is None else decode(table.ShareGroupMemberMetadataValue, value)
    group = find(named.group_id, read is not None)
    if group is None:
        return
    if read is None:
        group.remove(named.member_id)
        return
    known = group.members.get(named.member_id) or ShareMember(member_id=named.member_id)
    group.put(
        replace(
            known,
            rack_id=read.rack_id,
            client_id=read.client_id,
            client_host=read.client_host,
            topics=frozenset(read.subscribed_topic_names),
        )
    )


def _target(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.ShareGroupTargetAssignmentMemberKey, key)
    read = None if value is None else decode(table.ShareGroupTargetAssignmentMemberValue, value)
    group = find(named.group_id, read is not None)
    if group is not None:
        if read is None:
            group.targets.pop(named.member_id, None)
        else:
            group.targets[named.member_id] = assignment_of(read.topic_partitions)


def _current(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.ShareGroupCurrentMemberAssignmentKey, key)
    read = None if value is None else decode(table.ShareGroupCurrentMemberAssignmentValue, value)
    group = find(named.group_id, read is not None)
    if group is None:
        return
    known = group.members.get(named.member_id)
    if read is None:
        if known is not None:
            group.put(replace(known, epoch=0, previous_epoch=0, assigned={}))
        return
    group.put(
        replace(
            known or ShareMember(member_id=named.member_id),
            epoch=read.member_epoch,
            previous_epoch=read.previous_member_epoch,
            assigned=assignment_of(read.assigned_partitions),
        )
    )


def _partitions(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(table.ShareGroupStatePartitionMetadataKey, key)
    read = None if value is None else decode(table.ShareGroupStatePartitionMetadataValue, value)
    group = find(named.group_id, read is not None)
    if group is None:
        return
    group.known.clear()
    group.deleting.clear()
    if read is not None:
        for each in read.initializing_topics:
            group.known.setdefault(each.topic_id, KnownTopic(each.topic_name)).initializing.update(each.partitions)
        for each in read.initialized_topics:
            group.known.setdefault(each.topic_id, KnownTopic(each.topic_name)).initialized.update(each.partitions)
        group.deleting.update((each.topic_id, each.topic_name) for each in read.deleting_topics)


SHARE_RECORDS: Final[dict[int, Replay]] = {
    RecordType.SHARE_GROUP_MEMBER_METADATA: _member,
    RecordType.SHARE_GROUP_METADATA: _epoch,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: _assignment_epoch,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: _target,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current,
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: _partitions,
}
