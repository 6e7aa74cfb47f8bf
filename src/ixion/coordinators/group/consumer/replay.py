"""Reads the records of consumer groups back, one kind of record per function.

Compaction keeps the last record of each key and drops the order between keys, so any of them may come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from ixion.coordinators.group.consumer.assignment import assignment_of
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.consumer.member import ConsumerMember
from ixion.coordinators.group.consumer.reconcile import Current
from ixion.coordinators.group.consumer.records import current_of, subscription_of
from ixion.protocol.notation import Struct
from ixion.protocol.storage import decode, decode_key
from ixion.protocol.stored import consumer_group as stored
from ixion.protocol.stored.record_types import RecordType

FindGroup = Callable[[str, bool], ConsumerGroup | None]  # by id; True: make it if it is not there
Apply = Callable[[FindGroup, bytes, bytes | None], None]

V = TypeVar("V", bound=Struct)


def _value(table: type[V], value: bytes | None) -> V | None:
    return None if value is None else decode(table, value)


def _epoch(find: FindGroup, key: bytes, value: bytes | None) -> None:
    """The tombstone of this one is the last of a group that is deleted; whoever calls then drops the group."""
    group = find(decode_key(stored.ConsumerGroupMetadataKey, key).group_id, value is not None)
    read = _value(stored.ConsumerGroupMetadataValue, value)
    if group is not None:
        if read is None:
            group.dead = True
        else:
            group.epoch, group.metadata_hash = read.epoch, read.metadata_hash


def _assignment_epoch(find: FindGroup, key: bytes, value: bytes | None) -> None:
    group = find(decode_key(stored.ConsumerGroupTargetAssignmentMetadataKey, key).group_id, value is not None)
    read = _value(stored.ConsumerGroupTargetAssignmentMetadataValue, value)
    if group is not None:
        group.assignment_epoch = -1 if read is None else read.assignment_epoch


def _subscription(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(stored.ConsumerGroupMemberMetadataKey, key)
    group = find(named.group_id, value is not None)
    read = _value(stored.ConsumerGroupMemberMetadataValue, value)
    if group is None:
        return
    if read is None:
        group.remove(named.member_id)
        return
    member = group.members.get(named.member_id) or ConsumerMember(member_id=named.member_id)
    member.subscription = subscription_of(read)
    group.put(member)


def _target(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(stored.ConsumerGroupTargetAssignmentMemberKey, key)
    group = find(named.group_id, value is not None)
    read = _value(stored.ConsumerGroupTargetAssignmentMemberValue, value)
    if group is None:
        return
    if read is None:
        group.targets.pop(named.member_id, None)
    else:
        group.targets[named.member_id] = assignment_of(read.topic_partitions)


def _current(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(stored.ConsumerGroupCurrentMemberAssignmentKey, key)
    group = find(named.group_id, value is not None)
    read = _value(stored.ConsumerGroupCurrentMemberAssignmentValue, value)
    if group is None:
        return
    member = group.members.get(named.member_id)
    if read is None:
        if member is not None:
            group.move(member, Current())
        return
    if member is None:
        member = ConsumerMember(member_id=named.member_id)
        group.put(member)
    group.move(member, current_of(read))


def _regex(find: FindGroup, key: bytes, value: bytes | None) -> None:
    named = decode_key(stored.ConsumerGroupRegularExpressionKey, key)
    group = find(named.group_id, value is not None)
    read = _value(stored.ConsumerGroupRegularExpressionValue, value)
    if group is None:
        return
    if read is None:
        group.regexes.pop(named.regular_expression, None)
    else:
        group.regexes[named.regular_expression] = frozenset(read.topics)


CONSUMER_RECORDS: Final[Mapping[int, Apply]] = {
    RecordType.CONSUMER_GROUP_METADATA: _epoch,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: _assignment_epoch,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: _subscription,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _target,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: _regex,
}
