"""The records of __consumer_offsets that make up a share group: types 10 to 15.

10 a member and its subscription, 11 the group's epoch, 12 the assignment epoch, 13 a member's target, 14 what a member
has, 15 the share partitions of the group. Type 15 is what tells which states the share coordinator may have.
"""

from __future__ import annotations

from ixion.broker.coordinators.group.consumer.assignment import Assignment, pairs
from ixion.broker.coordinators.group.share.group import ShareGroup, ShareMember
from ixion.language.protocol.storage import encode, encode_key
from ixion.language.protocol.stored import share_group as table
from ixion.language.protocol.stored.record_types import RecordType

Entry = tuple[bytes, bytes | None]
STABLE = 0  # the state of a member; the only one in share groups


def epoch_record(group: ShareGroup) -> Entry:
    value = table.ShareGroupMetadataValue(epoch=group.epoch, metadata_hash=group.metadata_hash)
    return _epoch_key(group.group_id), encode(value, 0)


def assignment_epoch_record(group: ShareGroup) -> Entry:
    value = table.ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=group.assignment_epoch, assignment_timestamp=group.assigned_ms
    )
    return _assignment_epoch_key(group.group_id), encode(value, 0)


def member_record(group_id: str, member: ShareMember) -> Entry:
    value = table.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.topics)),
    )
    return _member_key(group_id, member.member_id), encode(value, 0)


def target_record(group_id: str, member_id: str, target: Assignment) -> Entry:
    topics = tuple(table.TopicPartition(topic_id=topic_id, partitions=numbers) for topic_id, numbers in pairs(target))
    value = table.ShareGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return _target_key(group_id, member_id), encode(value, 0)


def current_record(group_id: str, member: ShareMember) -> Entry:
    value = table.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=STABLE,
        assigned_partitions=tuple(
            table.TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in pairs(member.assigned)
        ),
    )
    return _current_key(group_id, member.member_id), encode(value, 0)


def partitions_record(group: ShareGroup) -> Entry:
    initializing: list[table.TopicPartitionsInfo] = []
    initialized: list[table.TopicPartitionsInfo] = []
    for topic_id in sorted(group.known):
        topic = group.known[topic_id]
        for numbers, into in ((topic.initializing, initializing), (topic.initialized, initialized)):
            if numbers:
                into.append(
                    table.TopicPartitionsInfo(
                        topic_id=topic_id, topic_name=topic.name, partitions=tuple(sorted(numbers))
                    )
                )
    value = table.ShareGroupStatePartitionMetadataValue(
        initializing_topics=tuple(initializing),
        initialized_topics=tuple(initialized),
        deleting_topics=tuple(
            table.TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in sorted(group.deleting.items())
        ),
    )
    return _partitions_key(group.group_id), encode(value, 0)


def member_tombstones(group_id: str, member_id: str) -> list[Entry]:
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_member_key(group_id, member_id), None),
    ]


def group_tombstones(group: ShareGroup) -> list[Entry]:
    group_id = group.group_id
    records = [record for member_id in group.members for record in member_tombstones(group_id, member_id)]
    keys = (_partitions_key(group_id), _assignment_epoch_key(group_id), _epoch_key(group_id))
    return [*records, *((key, None) for key in keys)]


def _epoch_key(group_id: str) -> bytes:
    return encode_key(RecordType.SHARE_GROUP_METADATA, table.ShareGroupMetadataKey(group_id=group_id))


def _assignment_epoch_key(group_id: str) -> bytes:
    key = table.ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
    return encode_key(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, key)


def _member_key(group_id: str, member_id: str) -> bytes:
    key = table.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.SHARE_GROUP_MEMBER_METADATA, key)


def _target_key(group_id: str, member_id: str) -> bytes:
    key = table.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, key)


def _current_key(group_id: str, member_id: str) -> bytes:
    key = table.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return encode_key(RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, key)


def _partitions_key(group_id: str) -> bytes:
    key = table.ShareGroupStatePartitionMetadataKey(group_id=group_id)
    return encode_key(RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, key)
