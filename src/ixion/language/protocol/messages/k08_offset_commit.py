"""A group commits its offsets."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, Int64, String, Struct, TopicName, Uuid, field


class OffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: String | None


class OffsetCommitRequestTopic(Struct):
    name: TopicName = field("2-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: tuple[OffsetCommitRequestPartition, ...]


class OffsetCommitRequest(Struct):
    group_id: GroupId
    generation_id_or_member_epoch: Int32 = -1
    member_id: String
    group_instance_id: String | None = field("7+", default=None)
    retention_time_ms: Int64 = field("2-4", default=-1, ignorable=True)
    topics: tuple[OffsetCommitRequestTopic, ...]


class OffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetCommitResponseTopic(Struct):
    name: TopicName = field("2-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: tuple[OffsetCommitResponsePartition, ...]


class OffsetCommitResponse(Struct):
    throttle_time_ms: Int32 = field("3+", ignorable=True)
    topics: tuple[OffsetCommitResponseTopic, ...]
