"""The offset of a partition at a timestamp; negative timestamps stand for the earliest, the latest and others."""

from ixion.language.protocol.notation import BrokerId, Int8, Int16, Int32, Int64, Struct, TopicName, field


class ListOffsetsPartition(Struct):
    partition_index: Int32
    current_leader_epoch: Int32 = field("4+", default=-1, ignorable=True)
    timestamp: Int64


class ListOffsetsTopic(Struct):
    name: TopicName
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Struct):
    replica_id: BrokerId
    isolation_level: Int8 = field("2+")
    topics: tuple[ListOffsetsTopic, ...]
    timeout_ms: Int32 = field("10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = field("4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: TopicName
    partitions: tuple[ListOffsetsPartitionResponse, ...]


class ListOffsetsResponse(Struct):
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    topics: tuple[ListOffsetsTopicResponse, ...]
