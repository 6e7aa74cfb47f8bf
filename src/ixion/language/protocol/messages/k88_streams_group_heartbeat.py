"""A member of a streams group shows that it is alive, and exchanges topology and tasks."""

from ixion.language.protocol.notation import (
    Bool,
    GroupId,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    TopicName,
    UInt16,
)


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: TopicName
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[KeyValue, ...]


class CopartitionGroup(Struct):
    source_topics: tuple[Int16, ...]
    source_topic_regex: tuple[Int16, ...]
    repartition_source_topics: tuple[Int16, ...]


class Subtopology(Struct):
    subtopology_id: String
    source_topics: tuple[TopicName, ...]
    source_topic_regex: tuple[String, ...]
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[TopicName, ...]
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


class Topology(Struct):
    epoch: Int32
    subtopologies: tuple[Subtopology, ...]


class TaskIds(Struct):
    subtopology_id: String
    partitions: tuple[Int32, ...]


class Endpoint(Struct):
    host: String
    port: UInt16


class TaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class StreamsGroupHeartbeatRequest(Struct):
    group_id: GroupId
    member_id: String
    member_epoch: Int32
    endpoint_information_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    topology: Topology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: String | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: Bool = False


class Status(Struct):
    status_code: Int8
    status_detail: String


class TopicPartition(Struct):
    topic: TopicName
    partitions: tuple[Int32, ...]


class EndpointToPartitions(Struct):
    user_endpoint: Endpoint
    active_partitions: tuple[TopicPartition, ...]
    standby_partitions: tuple[TopicPartition, ...]


class StreamsGroupHeartbeatResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    acceptable_recovery_lag: Int32
    task_offset_interval_ms: Int32
    status: tuple[Status, ...] | None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    endpoint_information_epoch: Int32
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = None
