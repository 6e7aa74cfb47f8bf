"""Delete the stored offsets of a group."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, Struct, TopicName


class OffsetDeleteRequestPartition(Struct):
    partition_index: Int32


class OffsetDeleteRequestTopic(Struct):
    name: TopicName
    partitions: tuple[OffsetDeleteRequestPartition, ...]


class OffsetDeleteRequest(Struct):
    group_id: GroupId
    topics: tuple[OffsetDeleteRequestTopic, ...]


class OffsetDeleteResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class OffsetDeleteResponseTopic(Struct):
    name: TopicName
    partitions: tuple[OffsetDeleteResponsePartition, ...]


class OffsetDeleteResponse(Struct):
    error_code: Int16
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...]
