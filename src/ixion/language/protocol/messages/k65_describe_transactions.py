"""The state of transactions."""

from ixion.language.protocol.notation import Int16, Int32, Int64, ProducerId, String, Struct, TopicName, TransactionalId


class DescribeTransactionsRequest(Struct):
    transactional_ids: tuple[TransactionalId, ...]


class TopicData(Struct):
    topic: TopicName
    partitions: tuple[Int32, ...]


class TransactionState(Struct):
    error_code: Int16
    transactional_id: TransactionalId
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: ProducerId
    producer_epoch: Int16
    topics: tuple[TopicData, ...]


class DescribeTransactionsResponse(Struct):
    throttle_time_ms: Int32 = 0
    transaction_states: tuple[TransactionState, ...]
