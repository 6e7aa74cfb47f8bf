"""The state, the topology and the members of streams groups."""

from ixion.language.protocol.notation import (
    Bool,
    GroupId,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    TopicName,
    UInt16,
)


class StreamsGroupDescribeRequest(Struct):
    group_ids: tuple[GroupId, ...]
    include_authorized_operations: Bool


class KeyValue(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: TopicName
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[KeyValue, ...]


class Subtopology(Struct):
    subtopology_id: String
    source_topics: tuple[TopicName, ...]
    repartition_sink_topics: tuple[TopicName, ...]
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_source_topics: tuple[TopicInfo, ...]


class Topology(Struct):
    epoch: Int32
    subtopologies: tuple[Subtopology, ...] | None = None


class Endpoint(Struct):
    host: String
    port: UInt16


class TaskOffset(Struct):
    subtopology_id: String
    partition: Int32
    offset: Int64


class TaskIds(Struct):
    subtopology_id: String
    partitions: tuple[Int32, ...]


class Assignment(Struct):
    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]


class Member(Struct):
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    client_id: String
    client_host: String
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...]
    task_offsets: tuple[TaskOffset, ...]
    task_end_offsets: tuple[TaskOffset, ...]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: Bool


class DescribedGroup(Struct):
    error_code: Int16
    error_message: String | None = None
    group_id: GroupId
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    topology: Topology | None = None
    members: tuple[Member, ...]
    authorized_operations: Int32 = -(2**31)


class StreamsGroupDescribeResponse(Struct):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]
