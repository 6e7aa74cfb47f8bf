"""The records of __consumer_offsets: the number in front of a key selects the tables of key and value.

A loader skips a record with an unknown number.
Old brokers wrote commits as type 0, which has the format of the first version of type 1.
"""

from __future__ import annotations

from enum import IntEnum

from ixion.language.protocol.notation import Struct
from ixion.language.protocol.stored import consumer_group, group_metadata, offset_commit, share_group, streams_group


class RecordType(IntEnum):
    """Number, table of the key, table of the value."""

    key_table: type[Struct]
    value_table: type[Struct]

    def __new__(cls, number: int, key: type[Struct] = Struct, value: type[Struct] = Struct) -> RecordType:
        member = int.__new__(cls, number)
        member._value_ = number
        member.key_table = key
        member.value_table = value
        return member

    LEGACY_OFFSET_COMMIT = 0, offset_commit.OffsetCommitKey, offset_commit.OffsetCommitValue
    OFFSET_COMMIT = 1, offset_commit.OffsetCommitKey, offset_commit.OffsetCommitValue
    GROUP_METADATA = 2, group_metadata.GroupMetadataKey, group_metadata.GroupMetadataValue
    CONSUMER_GROUP_METADATA = (
        3,
        consumer_group.ConsumerGroupMetadataKey,
        consumer_group.ConsumerGroupMetadataValue,
    )
    CONSUMER_GROUP_PARTITION_METADATA = (
        4,
        consumer_group.ConsumerGroupPartitionMetadataKey,
        consumer_group.ConsumerGroupPartitionMetadataValue,
    )
    CONSUMER_GROUP_MEMBER_METADATA = (
        5,
        consumer_group.ConsumerGroupMemberMetadataKey,
        consumer_group.ConsumerGroupMemberMetadataValue,
    )
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = (
        6,
        consumer_group.ConsumerGroupTargetAssignmentMetadataKey,
        consumer_group.ConsumerGroupTargetAssignmentMetadataValue,
    )
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = (
        7,
        consumer_group.ConsumerGroupTargetAssignmentMemberKey,
        consumer_group.ConsumerGroupTargetAssignmentMemberValue,
    )
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = (
        8,
        consumer_group.ConsumerGroupCurrentMemberAssignmentKey,
        consumer_group.ConsumerGroupCurrentMemberAssignmentValue,
    )
    SHARE_GROUP_MEMBER_METADATA = (
        10,
        share_group.ShareGroupMemberMetadataKey,
        share_group.ShareGroupMemberMetadataValue,
    )
    SHARE_GROUP_METADATA = 11, share_group.ShareGroupMetadataKey, share_group.ShareGroupMetadataValue
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = (
        12,
        share_group.ShareGroupTargetAssignmentMetadataKey,
        share_group.ShareGroupTargetAssignmentMetadataValue,
    )
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = (
        13,
        share_group.ShareGroupTargetAssignmentMemberKey,
        share_group.ShareGroupTargetAssignmentMemberValue,
    )
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = (
        14,
        share_group.ShareGroupCurrentMemberAssignmentKey,
        share_group.ShareGroupCurrentMemberAssignmentValue,
    )
    SHARE_GROUP_STATE_PARTITION_METADATA = (
        15,
        share_group.ShareGroupStatePartitionMetadataKey,
        share_group.ShareGroupStatePartitionMetadataValue,
    )
    CONSUMER_GROUP_REGULAR_EXPRESSION = (
        16,
        consumer_group.ConsumerGroupRegularExpressionKey,
        consumer_group.ConsumerGroupRegularExpressionValue,
    )
    STREAMS_GROUP_METADATA = (
        17,
        streams_group.StreamsGroupMetadataKey,
        streams_group.StreamsGroupMetadataValue,
    )
    STREAMS_GROUP_MEMBER_METADATA = (
        19,
        streams_group.StreamsGroupMemberMetadataKey,
        streams_group.StreamsGroupMemberMetadataValue,
    )
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = (
        20,
        streams_group.StreamsGroupTargetAssignmentMetadataKey,
        streams_group.StreamsGroupTargetAssignmentMetadataValue,
    )
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = (
        21,
        streams_group.StreamsGroupTargetAssignmentMemberKey,
        streams_group.StreamsGroupTargetAssignmentMemberValue,
    )
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = (
        22,
        streams_group.StreamsGroupCurrentMemberAssignmentKey,
        streams_group.StreamsGroupCurrentMemberAssignmentValue,
    )
    STREAMS_GROUP_TOPOLOGY = (
        23,
        streams_group.StreamsGroupTopologyKey,
        streams_group.StreamsGroupTopologyValue,
    )
