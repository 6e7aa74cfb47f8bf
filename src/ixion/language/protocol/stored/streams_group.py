"""Records of __consumer_offsets: a streams group, its topology, its members, their target and current tasks."""

from ixion.language.protocol.notation import Int8, Int16, Int32, Int64, String, Struct, UInt16, field


class StreamsGroupMetadataKey(Struct, within="0"):
    group_id: String


class LastAssignmentConfig(Struct):
    key: String
    value: String


class StreamsGroupMetadataValue(Struct, within="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = field(default=-1, tag=0)
    last_assignment_configs: tuple[LastAssignmentConfig, ...] | None = field(tag=1)


class StreamsGroupMemberMetadataKey(Struct, within="0"):
    group_id: String
    member_id: String


class Endpoint(Struct):
    host: String
    port: UInt16


class KeyValue(Struct):
    key: String
    value: String


class StreamsGroupMemberMetadataValue(Struct, within="0", flexible="0+"):
    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    rebalance_timeout_ms: Int32 = -1
    topology_epoch: Int32
    process_id: String
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...]


class StreamsGroupTargetAssignmentMetadataKey(Struct, within="0"):
    group_id: String


class StreamsGroupTargetAssignmentMetadataValue(Struct, within="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = field(default=0, tag=0)


class StreamsGroupTargetAssignmentMemberKey(Struct, within="0"):
    group_id: String
    member_id: String


class TargetTaskIds(Struct):
    subtopology_id: String
    partitions: tuple[Int32, ...]


class StreamsGroupTargetAssignmentMemberValue(Struct, within="0", flexible="0+"):
    active_tasks: tuple[TargetTaskIds, ...]
    standby_tasks: tuple[TargetTaskIds, ...]
    warmup_tasks: tuple[TargetTaskIds, ...]


class StreamsGroupCurrentMemberAssignmentKey(Struct, within="0"):
    group_id: String
    member_id: String


class TaskIds(Struct):
    subtopology_id: String
    partitions: tuple[Int32, ...]
    assignment_epochs: tuple[Int32, ...] | None = field(tag=0)


class StreamsGroupCurrentMemberAssignmentValue(Struct, within="0", flexible="0+"):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]
    active_tasks_pending_revocation: tuple[TaskIds, ...]
    standby_tasks_pending_revocation: tuple[TaskIds, ...]
    warmup_tasks_pending_revocation: tuple[TaskIds, ...]


class StreamsGroupTopologyKey(Struct, within="0"):
    group_id: String


class TopicConfig(Struct):
    key: String
    value: String


class TopicInfo(Struct):
    name: String
    partitions: Int32
    replication_factor: Int16
    topic_configs: tuple[TopicConfig, ...]


class CopartitionGroup(Struct):
    source_topics: tuple[Int16, ...]
    source_topic_regex: tuple[Int16, ...]
    repartition_source_topics: tuple[Int16, ...]


class Subtopology(Struct):
    subtopology_id: String
    source_topics: tuple[String, ...]
    source_topic_regex: tuple[String, ...]
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[String, ...]
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


class StreamsGroupTopologyValue(Struct, within="0", flexible="0+"):
    epoch: Int32
    subtopologies: tuple[Subtopology, ...]
