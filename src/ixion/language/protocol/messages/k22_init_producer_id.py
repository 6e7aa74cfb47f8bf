"""A producer id and epoch for an idempotent or transactional producer."""

from ixion.language.protocol.notation import Int16, Int32, ProducerId, Struct, TransactionalId, field


class InitProducerIdRequest(Struct):
    transactional_id: TransactionalId | None
    transaction_timeout_ms: Int32
    producer_id: ProducerId = field("3+", default=-1)
    producer_epoch: Int16 = field("3+", default=-1)


class InitProducerIdResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: ProducerId = -1
    producer_epoch: Int16
