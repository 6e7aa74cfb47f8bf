"""The partitions of topics, page by page."""

from ixion.language.protocol.notation import Bool, BrokerId, Int16, Int32, Struct, TopicName, Uuid


class TopicRequest(Struct):
    name: TopicName


class Cursor(Struct):
    topic_name: TopicName
    partition_index: Int32


class DescribeTopicPartitionsRequest(Struct):
    topics: tuple[TopicRequest, ...]
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: BrokerId
    leader_epoch: Int32 = -1
    replica_nodes: tuple[BrokerId, ...]
    isr_nodes: tuple[BrokerId, ...]
    eligible_leader_replicas: tuple[BrokerId, ...] | None = None
    last_known_elr: tuple[BrokerId, ...] | None = None
    offline_replicas: tuple[BrokerId, ...]


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: Int16
    name: TopicName | None
    topic_id: Uuid
    is_internal: Bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...]
    topic_authorized_operations: Int32 = -(2**31)


class DescribeTopicPartitionsResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...]
    next_cursor: Cursor | None = None
