"""Move replicas of partitions to other brokers, or cancel such a move."""

from ixion.language.protocol.notation import Bool, BrokerId, Int16, Int32, String, Struct, TopicName, field


class ReassignablePartition(Struct):
    partition_index: Int32
    replicas: tuple[BrokerId, ...] | None = None


class ReassignableTopic(Struct):
    name: TopicName
    partitions: tuple[ReassignablePartition, ...]


class AlterPartitionReassignmentsRequest(Struct):
    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = field("1+", default=True)
    topics: tuple[ReassignableTopic, ...]


class ReassignablePartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None


class ReassignableTopicResponse(Struct):
    name: TopicName
    partitions: tuple[ReassignablePartitionResponse, ...]


class AlterPartitionReassignmentsResponse(Struct):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = field("1+", default=True, ignorable=True)
    error_code: Int16
    error_message: String | None
    responses: tuple[ReassignableTopicResponse, ...]
