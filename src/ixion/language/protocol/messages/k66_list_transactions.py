"""The transactions a coordinator knows."""

from ixion.language.protocol.notation import Int16, Int32, Int64, ProducerId, String, Struct, TransactionalId, field


class ListTransactionsRequest(Struct):
    state_filters: tuple[String, ...]
    producer_id_filters: tuple[ProducerId, ...]
    duration_filter: Int64 = field("1+", default=-1)
    transactional_id_pattern: String | None = field("2+", default=None)


class TransactionState(Struct):
    transactional_id: TransactionalId
    producer_id: ProducerId
    transaction_state: String


class ListTransactionsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    unknown_state_filters: tuple[String, ...]
    transaction_states: tuple[TransactionState, ...]
