"""The end offset of a leader epoch: followers and consumers use it to find where their log diverges."""

from ixion.language.protocol.notation import BrokerId, Int16, Int32, Int64, Struct, TopicName, field


class OffsetForLeaderPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


class OffsetForLeaderTopic(Struct):
    topic: TopicName
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Struct):
    replica_id: BrokerId = field("3+", default=-2, ignorable=True)
    topics: tuple[OffsetForLeaderTopic, ...]


class EpochEndOffset(Struct):
    error_code: Int16
    partition: Int32
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Struct):
    topic: TopicName
    partitions: tuple[EpochEndOffset, ...]


class OffsetForLeaderEpochResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetForLeaderTopicResult, ...]
