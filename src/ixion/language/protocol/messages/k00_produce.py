"""Append record batches, by topic and partition. One batch per partition; acks says when to answer."""

from ixion.language.protocol.notation import (
    BrokerId,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    TopicName,
    TransactionalId,
    Uuid,
    field,
)


class PartitionProduceData(Struct):
    index: Int32
    records: Records | None


class TopicProduceData(Struct):
    name: TopicName = field("3-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_data: tuple[PartitionProduceData, ...]


class ProduceRequest(Struct):
    transactional_id: TransactionalId | None = None
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[TopicProduceData, ...]


class BatchIndexAndErrorMessage(Struct):
    batch_index: Int32
    batch_index_error_message: String | None = None


class LeaderIdAndEpoch(Struct):
    leader_id: BrokerId = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Struct):
    index: Int32
    error_code: Int16
    base_offset: Int64
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = field("8+", ignorable=True)
    error_message: String | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", tag=0)


class TopicProduceResponse(Struct):
    name: TopicName = field("3-12", ignorable=True)
    topic_id: Uuid = field("13+", ignorable=True)
    partition_responses: tuple[PartitionProduceResponse, ...]


class NodeEndpoint(Struct):
    node_id: BrokerId
    host: String
    port: Int32
    rack: String | None = None


class ProduceResponse(Struct):
    responses: tuple[TopicProduceResponse, ...]
    throttle_time_ms: Int32 = 0
    node_endpoints: tuple[NodeEndpoint, ...] = field("10+", tag=0)
