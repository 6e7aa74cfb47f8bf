"""Commit or abort a transaction."""

from ixion.language.protocol.notation import Bool, Int16, Int32, ProducerId, Struct, TransactionalId, field


class EndTxnRequest(Struct):
    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: Int16
    committed: Bool


class EndTxnResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: ProducerId = field("5+", default=-1, ignorable=True)
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)
