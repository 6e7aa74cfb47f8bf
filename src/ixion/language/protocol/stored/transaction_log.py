"""Records of __transaction_state: a transactional id, its producer and its open transaction."""

from ixion.language.protocol.notation import Int8, Int16, Int32, Int64, String, Struct, field


class TransactionLogKey(Struct, within="0"):
    transactional_id: String


class PartitionsSchema(Struct):
    topic: String
    partition_ids: tuple[Int32, ...]


class TransactionLogValue(Struct, within="0-1", flexible="1+"):
    producer_id: Int64
    previous_producer_id: Int64 = field("1+", default=-1, tag=0)
    next_producer_id: Int64 = field("1+", default=-1, tag=1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = field("1+", default=-1, tag=3)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: tuple[PartitionsSchema, ...] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = field("1+", default=0, tag=2)
