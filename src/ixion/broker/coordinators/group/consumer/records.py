"""The records of __consumer_offsets that make up a consumer group, and how they are read back.

A group is many records, so that a change writes only what changed: one for the group's epoch, one for the assignment
epoch, one for each resolved pattern; and for each member its subscription, its target and its current assignment.
"""

from __future__ import annotations

from ixion.broker.coordinators.group.consumer.assignment import Assignment, assignment_of, pairs
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.member import ClassicSide, ConsumerMember, Subscription
from ixion.broker.coordinators.group.consumer.reconcile import Current
from ixion.broker.coordinators.group.consumer.states import MemberState
from ixion.language.protocol.storage import encode, encode_key
from ixion.language.protocol.stored.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from ixion.language.protocol.stored.record_types import RecordType

Entry = tuple[bytes, bytes | None]


def epoch_record(group: ConsumerGroup) -> Entry:
    value = ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
    return _epoch_key(group.group_id), encode(value, 0)


def assignment_epoch_record(group: ConsumerGroup) -> Entry:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=group.assignment_epoch, assignment_timestamp=group.assigned_ms
    )
    return _assignment_epoch_key(group.group_id), encode(value, 0)


def subscription_record(group_id: str, member: ConsumerMember) -> Entry:
    wanted = member.subscription
    classic = wanted.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=wanted.instance_id,
        rack_id=wanted.rack_id,
        client_id=wanted.client_id,
        client_host=wanted.client_host,
        subscribed_topic_names=tuple(sorted(wanted.topics)),
        subscribed_topic_regex=wanted.regex,
        rebalance_timeout_ms=wanted.rebalance_timeout_ms,
        server_assignor=wanted.assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=tuple(ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols),
        ),
    )
    return _subscription_key(group_id, member.member_id), encode(value, 0)


def target_record(group_id: str, member_id: str, target: Assignment) -> Entry:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=tuple(
            TopicPartition(topic_id=topic_id, partitions=numbers) for topic_id, numbers in pairs(target)
        )
    )
    return _target_key(group_id, member_id), encode(value, 0)


def target_tombstone(group_id: str, member_id: str) -> Entry:
    return _target_key(group_id, member_id), None


def current_record(group_id: str, member: ConsumerMember) -> Entry:
    current = member.current
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        assigned_partitions=_stored(current, current.assigned),
        partitions_pending_revocation=_stored(current, current.revoking),
    )
    return _current_key(group_id, member.member_id), encode(value, 0)


def regex_record(group_id: str, regex: str, topics: frozenset[str], version: int, now_ms: int) -> Entry:
    value = ConsumerGroupRegularExpressionValue(topics=tuple(sorted(topics)), version=version, timestamp=now_ms)
    return _regex_key(group_id, regex), encode(value, 0)


def regex_tombstone(group_id: str, regex: str) -> Entry:
    return _regex_key(group_id, regex), None


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_subscription_key(group_id, member_id), None),
    ]


def group_tombstones(group: ConsumerGroup) -> list[Entry]:
    group_id = group.group_id
    records = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    records += [regex_tombstone(group_id, regex) for regex in group.regexes]
    return [*records, (_assignment_epoch_key(group_id), None), (_epoch_key(group_id), None)]


def subscription_of(value: ConsumerGroupMemberMetadataValue) -> Subscription:
    classic = value.classic_member_metadata
    return Subscription(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicSide(
            session_timeout_ms=classic.session_timeout_ms,
            protocols=tuple((each.name, each.metadata) for each in classic.supported_protocols),
        ),
    )


def current_of(value: ConsumerGroupCurrentMemberAssignmentValue) -> Current:
    """Records before Kafka 4.3 lack the epoch at which a member got a partition; the present one is taken."""
    known = value.state in MemberState.__members__.values()
    return Current(
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=assignment_of(value.assigned_partitions),
        revoking=assignment_of(value.partitions_pending_revocation),
        since={
            (topic.topic_id, partition): epoch
            for topic in (*value.assigned_partitions, *value.partitions_pending_revocation)
            for partition, epoch in zip(topic.partitions, topic.assignment_epochs or (), strict=False)
            if epoch != value.member_epoch
        },
    )


def _stored(current: Current, part: Assignment) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(
            topic_id=topic_id,
            partitions=numbers,
            assignment_epochs=tuple(current.since.get((topic_id, number), current.epoch) for number in numbers),
        )
        for topic_id, numbers in pairs(part)
    )


def _epoch_key(group_id: str) -> bytes:
    return encode_key(RecordType.CONSUMER_GROUP_METADATA, ConsumerGroupMetadataKey(group_id=group_id))


def _assignment_epoch_key(group_id: str) -> bytes:
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return encode_key(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, key)


def _subscription_key(group_id: str, member_id: str) -> bytes:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.CONSUMER_GROUP_MEMBER_METADATA, key)


def _target_key(group_id: str, member_id: str) -> bytes:
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, key)


def _current_key(group_id: str, member_id: str) -> bytes:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, key)


def _regex_key(group_id: str, regex: str) -> bytes:
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return encode_key(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, key)
