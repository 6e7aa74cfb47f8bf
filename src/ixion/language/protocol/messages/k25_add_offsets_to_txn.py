"""Add a group, whose offsets a transaction is about to commit, to that transaction."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, ProducerId, Struct, TransactionalId


class AddOffsetsToTxnRequest(Struct):
    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: Int16
    group_id: GroupId


class AddOffsetsToTxnResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
