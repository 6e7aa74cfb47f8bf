"""Records of __consumer_offsets: a share group, its members, their target and current assignments."""

from ixion.language.protocol.notation import Int8, Int32, Int64, String, Struct, Uuid, field


class ShareGroupMetadataKey(Struct, within="0"):
    group_id: String


class ShareGroupMetadataValue(Struct, within="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64


class ShareGroupMemberMetadataKey(Struct, within="0"):
    group_id: String
    member_id: String


class ShareGroupMemberMetadataValue(Struct, within="0", flexible="0+"):
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]


class ShareGroupTargetAssignmentMetadataKey(Struct, within="0"):
    group_id: String


class ShareGroupTargetAssignmentMetadataValue(Struct, within="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = field(default=0, tag=0)


class ShareGroupTargetAssignmentMemberKey(Struct, within="0"):
    group_id: String
    member_id: String


class TopicPartition(Struct):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ShareGroupTargetAssignmentMemberValue(Struct, within="0", flexible="0+"):
    topic_partitions: tuple[TopicPartition, ...]


class ShareGroupCurrentMemberAssignmentKey(Struct, within="0"):
    group_id: String
    member_id: String


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ShareGroupCurrentMemberAssignmentValue(Struct, within="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]


class ShareGroupStatePartitionMetadataKey(Struct, within="0"):
    group_id: String


class TopicPartitionsInfo(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: tuple[Int32, ...]


class TopicInfo(Struct):
    topic_id: Uuid
    topic_name: String


class ShareGroupStatePartitionMetadataValue(Struct, within="0", flexible="0+"):
    initializing_topics: tuple[TopicPartitionsInfo, ...]
    initialized_topics: tuple[TopicPartitionsInfo, ...]
    deleting_topics: tuple[TopicInfo, ...]
