"""Add partitions to a transaction before it writes to them.

From version 4 brokers use it to verify many transactions at once.
"""

from ixion.language.protocol.notation import Bool, Int16, Int32, ProducerId, Struct, TopicName, TransactionalId, field


class AddPartitionsToTxnTopic(Struct):
    name: TopicName
    partitions: tuple[Int32, ...]


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: Int16
    verify_only: Bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...]


class AddPartitionsToTxnRequest(Struct):
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = field("4+")
    v3_and_below_transactional_id: TransactionalId = field("0-3")
    v3_and_below_producer_id: ProducerId = field("0-3")
    v3_and_below_producer_epoch: Int16 = field("0-3")
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = field("0-3")


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: Int32
    partition_error_code: Int16


class AddPartitionsToTxnTopicResult(Struct):
    name: TopicName
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...]


class AddPartitionsToTxnResult(Struct):
    transactional_id: TransactionalId
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...]


class AddPartitionsToTxnResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("4+", ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = field("4+")
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = field("0-3")
