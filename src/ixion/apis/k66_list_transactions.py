"""ListTransactions, 0-2: the transactional ids that this broker coordinates (KIP-664).

Filters: states by name (names that are none are given back), producer ids, version 1 on how long a transaction has run
(milliseconds, KIP-994), version 2 on a regular expression that the whole id must match (KIP-1152), in the syntax of RE2
and in time that grows with the length of the ids only.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.coordinators.group.consumer.pattern import Pattern
from ixion.coordinators.group.consumer.pattern_syntax import PatternError
from ixion.coordinators.txn.snapshot import NO_EPOCH
from ixion.coordinators.txn.states import BY_LABEL
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


def make(services: Services) -> Handle:
    transactions = services.transactions
    clock_ms = services.clock_ms

    def handle(call: Call) -> ListTransactionsResponse:
        request = cast(ListTransactionsRequest, call.body)
        known = transactions.list()
        if isinstance(known, ErrorCode):
            return _refuse(known)
        states = {BY_LABEL[name] for name in request.state_filters if name in BY_LABEL}
        unknown = tuple(name for name in request.state_filters if name not in BY_LABEL)
        try:
            pattern = _compile(request.transactional_id_pattern, [name for name, _ in known])
        except PatternError:
            return _refuse(ErrorCode.INVALID_REGULAR_EXPRESSION)
        producers = set(request.producer_id_filters)
        begun_before_ms = clock_ms() - request.duration_filter
        chosen = tuple(
            TransactionState(
                transactional_id=transactional_id,
                producer_id=now.producer_id,
                transaction_state=now.state.label,
            )
            for transactional_id, now in known
            if now.epoch != NO_EPOCH
            and (not request.state_filters or now.state in states)
            and (not producers or now.producer_id in producers)
            and (request.duration_filter < 0 or now.started_ms < begun_before_ms)
            and (pattern is None or pattern.matches(transactional_id))
        )
        return ListTransactionsResponse(
            throttle_time_ms=0, error_code=0, unknown_state_filters=unknown, transaction_states=chosen
        )

    return handle


def _refuse(code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(
        throttle_time_ms=0, error_code=code, unknown_state_filters=(), transaction_states=()
    )


def _compile(pattern: str | None, names: list[str]) -> Pattern | None:
    return Pattern(pattern, frozenset().union(*names)) if pattern else None
