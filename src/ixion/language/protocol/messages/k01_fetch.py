"""Read record batches from given offsets on, waiting up to a time for a minimum of bytes.

Followers replicate with it.
"""

from ixion.language.protocol.notation import (
    BrokerId,
    Int8,
    Int16,
    Int32,
    Int64,
    ProducerId,
    SentRecords,
    String,
    Struct,
    TopicName,
    Uuid,
    field,
)


class ReplicaState(Struct):
    replica_id: BrokerId = -1
    replica_epoch: Int64 = -1


class FetchPartition(Struct):
    partition: Int32
    current_leader_epoch: Int32 = field("9+", default=-1, ignorable=True)
    fetch_offset: Int64
    last_fetched_epoch: Int32 = field("12+", default=-1)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    partition_max_bytes: Int32
    replica_directory_id: Uuid = field("17+", tag=0, ignorable=True)
    high_watermark: Int64 = field("18+", default=2**63 - 1, tag=1, ignorable=True)


class FetchTopic(Struct):
    topic: TopicName = field("4-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Struct):
    topic: TopicName = field("7-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: tuple[Int32, ...]


class FetchRequest(Struct):
    cluster_id: String | None = field("12+", default=None, tag=0, ignorable=True)
    replica_id: BrokerId = field("4-14", default=-1)
    replica_state: ReplicaState = field("15+", tag=1)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0
    session_id: Int32 = field("7+", default=0, ignorable=True)
    session_epoch: Int32 = field("7+", default=-1, ignorable=True)
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...] = field("7+")
    rack_id: String = field("11+", default="", ignorable=True)


class EpochEndOffset(Struct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Struct):
    leader_id: BrokerId = -1
    leader_epoch: Int32 = -1


class SnapshotId(Struct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Struct):
    producer_id: ProducerId
    first_offset: Int64


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field("12+", tag=0)
    current_leader: LeaderIdAndEpoch = field("12+", tag=1)
    snapshot_id: SnapshotId = field("12+", tag=2)
    aborted_transactions: tuple[AbortedTransaction, ...] | None
    preferred_read_replica: BrokerId = field("11+", default=-1)
    records: SentRecords | None


class FetchableTopicResponse(Struct):
    topic: TopicName = field("4-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partitions: tuple[PartitionData, ...]


class NodeEndpoint(Struct):
    node_id: BrokerId
    host: String
    port: Int32
    rack: String | None = None


class FetchResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("7+", ignorable=True)
    session_id: Int32 = field("7+", default=0)
    responses: tuple[FetchableTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...] = field("16+", tag=0)
