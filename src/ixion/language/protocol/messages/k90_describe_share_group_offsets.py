"""The start offsets of share groups."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, Int64, String, Struct, TopicName, Uuid, field


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: TopicName
    partitions: tuple[Int32, ...]


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: GroupId
    topics: tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None


class DescribeShareGroupOffsetsRequest(Struct):
    groups: tuple[DescribeShareGroupOffsetsRequestGroup, ...]


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Int64 = field("1+", default=-1, ignorable=True)
    error_code: Int16
    error_message: String | None = None


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: TopicName
    topic_id: Uuid
    partitions: tuple[DescribeShareGroupOffsetsResponsePartition, ...]


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: GroupId
    topics: tuple[DescribeShareGroupOffsetsResponseTopic, ...]
    error_code: Int16
    error_message: String | None = None


class DescribeShareGroupOffsetsResponse(Struct):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribeShareGroupOffsetsResponseGroup, ...]
