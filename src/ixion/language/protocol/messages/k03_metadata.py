"""Brokers, controller, topics and the leaders of their partitions. May create a missing topic."""

from ixion.language.protocol.notation import Bool, BrokerId, Int16, Int32, String, Struct, TopicName, Uuid, field


class MetadataRequestTopic(Struct):
    topic_id: Uuid = field("10+", ignorable=True)
    name: TopicName | None = field(nullable="10+")


class MetadataRequest(Struct):
    topics: tuple[MetadataRequestTopic, ...] | None = field(nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10")
    include_topic_authorized_operations: Bool = field("8+")


class MetadataResponseBroker(Struct):
    node_id: BrokerId
    host: String
    port: Int32
    rack: String | None = field("1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: Int16
    partition_index: Int32
    leader_id: BrokerId
    leader_epoch: Int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: tuple[BrokerId, ...]
    isr_nodes: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...] = field("5+", ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: Int16
    name: TopicName | None = field(nullable="12+")
    topic_id: Uuid = field("10+", ignorable=True)
    is_internal: Bool = field("1+", default=False, ignorable=True)
    partitions: tuple[MetadataResponsePartition, ...]
    topic_authorized_operations: Int32 = field("8+", default=-(2**31))


class MetadataResponse(Struct):
    throttle_time_ms: Int32 = field("3+", ignorable=True)
    brokers: tuple[MetadataResponseBroker, ...]
    cluster_id: String | None = field("2+", default=None, ignorable=True)
    controller_id: BrokerId = field("1+", default=-1, ignorable=True)
    topics: tuple[MetadataResponseTopic, ...]
    cluster_authorized_operations: Int32 = field("8-10", default=-(2**31))
    error_code: Int16 = field("13+", ignorable=True)
