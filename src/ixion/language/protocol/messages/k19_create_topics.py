"""Create topics."""

from ixion.language.protocol.notation import Bool, BrokerId, Int8, Int16, Int32, String, Struct, TopicName, Uuid, field


class CreatableReplicaAssignment(Struct):
    partition_index: Int32
    broker_ids: tuple[BrokerId, ...]


class CreatableTopicConfig(Struct):
    name: String
    value: String | None


class CreatableTopic(Struct):
    name: TopicName
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[CreatableReplicaAssignment, ...]
    configs: tuple[CreatableTopicConfig, ...]


class CreateTopicsRequest(Struct):
    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: Bool = False


class CreatableTopicConfigs(Struct):
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool


class CreatableTopicResult(Struct):
    name: TopicName
    topic_id: Uuid = field("7+", ignorable=True)
    error_code: Int16
    error_message: String | None
    topic_config_error_code: Int16 = field("5+", tag=0, ignorable=True)
    num_partitions: Int32 = field("5+", default=-1, ignorable=True)
    replication_factor: Int16 = field("5+", default=-1, ignorable=True)
    configs: tuple[CreatableTopicConfigs, ...] | None = field("5+", ignorable=True)


class CreateTopicsResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: tuple[CreatableTopicResult, ...]
