"""The committed offsets of groups."""

from ixion.language.protocol.notation import Bool, GroupId, Int16, Int32, Int64, String, Struct, TopicName, Uuid, field


class OffsetFetchRequestTopic(Struct):
    name: TopicName
    partition_indexes: tuple[Int32, ...]


class OffsetFetchRequestTopics(Struct):
    name: TopicName = field("8-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partition_indexes: tuple[Int32, ...]


class OffsetFetchRequestGroup(Struct):
    group_id: GroupId
    member_id: String | None = field("9+", default=None, ignorable=True)
    member_epoch: Int32 = field("9+", default=-1, ignorable=True)
    topics: tuple[OffsetFetchRequestTopics, ...] | None


class OffsetFetchRequest(Struct):
    group_id: GroupId = field("1-7")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = field("1-7", nullable="2+")
    groups: tuple[OffsetFetchRequestGroup, ...] = field("8+")
    require_stable: Bool = field("7+", default=False)


class OffsetFetchResponsePartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("5+", default=-1, ignorable=True)
    metadata: String | None
    error_code: Int16


class OffsetFetchResponseTopic(Struct):
    name: TopicName
    partitions: tuple[OffsetFetchResponsePartition, ...]


class OffsetFetchResponsePartitions(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = -1
    metadata: String | None
    error_code: Int16


class OffsetFetchResponseTopics(Struct):
    name: TopicName = field("8-9", ignorable=True)
    topic_id: Uuid = field("10+", ignorable=True)
    partitions: tuple[OffsetFetchResponsePartitions, ...]


class OffsetFetchResponseGroup(Struct):
    group_id: GroupId
    topics: tuple[OffsetFetchResponseTopics, ...]
    error_code: Int16 = 0


class OffsetFetchResponse(Struct):
    throttle_time_ms: Int32 = field("3+", ignorable=True)
    topics: tuple[OffsetFetchResponseTopic, ...] = field("1-7")
    error_code: Int16 = field("2-7", default=0, ignorable=True)
    groups: tuple[OffsetFetchResponseGroup, ...] = field("8+")
