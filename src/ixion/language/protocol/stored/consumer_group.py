"""Records of __consumer_offsets: a consumer group (KIP-848), its members, their target and current assignments."""

from ixion.language.protocol.notation import Bytes, Int8, Int32, Int64, String, Struct, Uuid, field


class ConsumerGroupMetadataKey(Struct, within="0"):
    group_id: String


class ConsumerGroupMetadataValue(Struct, within="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64 = field(default=0, tag=0)


class ConsumerGroupPartitionMetadataKey(Struct, within="0"):
    group_id: String


class PartitionMetadata(Struct):
    partition: Int32
    racks: tuple[String, ...]


class TopicMetadata(Struct):
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: tuple[PartitionMetadata, ...]


class ConsumerGroupPartitionMetadataValue(Struct, within="0", flexible="0+"):
    topics: tuple[TopicMetadata, ...]


class ConsumerGroupMemberMetadataKey(Struct, within="0"):
    group_id: String
    member_id: String


class ClassicProtocol(Struct):
    name: String
    metadata: Bytes


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Int32
    supported_protocols: tuple[ClassicProtocol, ...]


class ConsumerGroupMemberMetadataValue(Struct, within="0", flexible="0+"):
    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None
    classic_member_metadata: ClassicMemberMetadata | None = field(tag=0)


class ConsumerGroupTargetAssignmentMetadataKey(Struct, within="0"):
    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(Struct, within="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = field(default=0, tag=0)


class ConsumerGroupTargetAssignmentMemberKey(Struct, within="0"):
    group_id: String
    member_id: String


class TopicPartition(Struct):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ConsumerGroupTargetAssignmentMemberValue(Struct, within="0", flexible="0+"):
    topic_partitions: tuple[TopicPartition, ...]


class ConsumerGroupCurrentMemberAssignmentKey(Struct, within="0"):
    group_id: String
    member_id: String


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: tuple[Int32, ...]
    assignment_epochs: tuple[Int32, ...] | None = field(tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Struct, within="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]
    partitions_pending_revocation: tuple[TopicPartitions, ...]


class ConsumerGroupRegularExpressionKey(Struct, within="0"):
    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(Struct, within="0", flexible="0+"):
    topics: tuple[String, ...]
    version: Int64
    timestamp: Int64
