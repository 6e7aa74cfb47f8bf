"""Reads the records of consumer groups back, one kind of record per function; a value of None is a tombstone.

Compaction keeps only the last record of each key, so any key may come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final, Generic, TypeVar

from ixion.broker.coordinators.group.consumer.assignment import assignment_of
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.member import ConsumerMember
from ixion.broker.coordinators.group.consumer.reconcile import Current
from ixion.broker.coordinators.group.consumer.records import current_of, subscription_of
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.storage import decode, decode_key
from ixion.language.protocol.stored import consumer_group as stored
from ixion.language.protocol.stored.record_types import RecordType

FindGroup = Callable[[str, bool], ConsumerGroup | None]  # by id; True: make it if it is not there

K = TypeVar("K", bound=Struct)
V = TypeVar("V", bound=Struct)

_group_id: Callable[[Struct], str] = attrgetter("group_id")  # every key has one


class Kind(Generic[K, V]):
    """A kind of record: its tables, and how it changes its group. A tombstone of an unknown group does nothing."""

    def __init__(self, key: type[K], value: type[V], apply: Callable[[ConsumerGroup, K, V | None], None]) -> None:
        self._key = key
        self._value = value
        self._apply = apply

    def replay(self, find: FindGroup, key: bytes, value: bytes | None) -> None:
        named = decode_key(self._key, key)
        read = None if value is None else decode(self._value, value)
        group = find(_group_id(named), read is not None)
        if group is not None:
            self._apply(group, named, read)


def _epoch(
    group: ConsumerGroup, _: stored.ConsumerGroupMetadataKey, read: stored.ConsumerGroupMetadataValue | None
) -> None:
    """Its tombstone is the last record of a deleted group; the caller then drops the group."""
    if read is None:
        group.dead = True
    else:
        group.epoch, group.metadata_hash = read.epoch, read.metadata_hash


def _assignment_epoch(
    group: ConsumerGroup,
    _: stored.ConsumerGroupTargetAssignmentMetadataKey,
    read: stored.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = -1 if read is None else read.assignment_epoch
    group.assigned_ms = 0 if read is None else read.assignment_timestamp


def _subscription(
    group: ConsumerGroup,
    named: stored.ConsumerGroupMemberMetadataKey,
    read: stored.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if read is None:
        group.remove(named.member_id)
        return
    member = group.members.get(named.member_id) or ConsumerMember(member_id=named.member_id, is_loaded=True)
    group.put(member, subscription_of(read))


def _target(
    group: ConsumerGroup,
    named: stored.ConsumerGroupTargetAssignmentMemberKey,
    read: stored.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if read is None:
        group.targets.pop(named.member_id, None)
    else:
        group.targets[named.member_id] = assignment_of(read.topic_partitions)


def _current(
    group: ConsumerGroup,
    named: stored.ConsumerGroupCurrentMemberAssignmentKey,
    read: stored.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(named.member_id)
    if member is None:
        if read is None:
            return
        member = ConsumerMember(member_id=named.member_id, is_loaded=True)
        group.put(member, member.subscription)
    group.move(member, Current() if read is None else current_of(read))


def _regex(
    group: ConsumerGroup,
    named: stored.ConsumerGroupRegularExpressionKey,
    read: stored.ConsumerGroupRegularExpressionValue | None,
) -> None:
    if read is None:
        group.forget_regex(named.regular_expression)
    else:
        group.resolve(named.regular_expression, frozenset(read.topics))


CONSUMER_RECORDS: Final[Mapping[int, Callable[[FindGroup, bytes, bytes | None], None]]] = {
    RecordType.CONSUMER_GROUP_METADATA: Kind(
        stored.ConsumerGroupMetadataKey, stored.ConsumerGroupMetadataValue, _epoch
    ).replay,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: Kind(
        stored.ConsumerGroupTargetAssignmentMetadataKey,
        stored.ConsumerGroupTargetAssignmentMetadataValue,
        _assignment_epoch,
    ).replay,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: Kind(
        stored.ConsumerGroupMemberMetadataKey, stored.ConsumerGroupMemberMetadataValue, _subscription
    ).replay,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: Kind(
        stored.ConsumerGroupTargetAssignmentMemberKey, stored.ConsumerGroupTargetAssignmentMemberValue, _target
    ).replay,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: Kind(
        stored.ConsumerGroupCurrentMemberAssignmentKey, stored.ConsumerGroupCurrentMemberAssignmentValue, _current
    ).replay,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: Kind(
        stored.ConsumerGroupRegularExpressionKey, stored.ConsumerGroupRegularExpressionValue, _regex
    ).replay,
}
