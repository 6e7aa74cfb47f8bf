"""The state of a KRaft quorum."""

from ixion.language.protocol.notation import (
    BrokerId,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    TopicName,
    UInt16,
    Uuid,
    field,
)


class PartitionData(Struct):
    partition_index: Int32


class TopicData(Struct):
    topic_name: TopicName
    partitions: tuple[PartitionData, ...]


class DescribeQuorumRequest(Struct):
    topics: tuple[TopicData, ...]


class ReplicaState(Struct):
    replica_id: BrokerId
    replica_directory_id: Uuid = field("2+")
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: Int64 = field("1+", default=-1, ignorable=True)


class ResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = field("2+", ignorable=True)
    leader_id: BrokerId
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]


class ResponseTopicData(Struct):
    topic_name: TopicName
    partitions: tuple[ResponsePartitionData, ...]


class Listener(Struct):
    name: String
    host: String
    port: UInt16


class Node(Struct):
    node_id: BrokerId
    listeners: tuple[Listener, ...]


class DescribeQuorumResponse(Struct):
    error_code: Int16
    error_message: String | None = field("2+", ignorable=True)
    topics: tuple[ResponseTopicData, ...]
    nodes: tuple[Node, ...] = field("2+")
