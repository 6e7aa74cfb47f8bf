"""ListTransactions, 0-2: the transactional ids that this broker coordinates (KIP-664).

Filters: states by name (the response lists unknown names), producer ids, from version 1 the age of a transaction
(milliseconds, KIP-994), from version 2 a regular expression that must match the whole id (KIP-1152), in RE2 syntax. The
ids are filtered, and the response is encoded, in turns of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, TRANSACTIONAL_ID
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import filtered
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.patterns import Pattern, PatternError
from ixion.broker.coordinators.txn.snapshot import NO_EPOCH
from ixion.broker.coordinators.txn.states import BY_LABEL
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k66_list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"state_filters": once(), "producer_id_filters": once()}


def make(services: Services) -> Handle:
    transactions = services.transactions
    clock_ms = services.clock_ms

    def handle(call: Call) -> Steps[ListTransactionsResponse]:
        request = cast(ListTransactionsRequest, call.body)
        known = transactions.list()
        if isinstance(known, ErrorCode):
            return _refuse(known)
        try:
            chosen = yield from _choose(request, known, clock_ms() - request.duration_filter)
        except PatternError:
            return _refuse(ErrorCode.INVALID_REGULAR_EXPRESSION)
        return ListTransactionsResponse(
            error_code=0,
            unknown_state_filters=tuple(name for name in request.state_filters if name not in BY_LABEL),
            transaction_states=tuple(chosen),
        )

    return handle


def _choose(
    request: ListTransactionsRequest, known: list[Transaction], begun_before_ms: int
) -> Steps[list[TransactionState]]:
    states = {BY_LABEL[name] for name in request.state_filters if name in BY_LABEL}
    producers = set(request.producer_id_filters)
    pattern = Pattern(request.transactional_id_pattern) if request.transactional_id_pattern else None
    chosen: list[TransactionState] = []
    for each in known:
        now = each.now
        if (
            now.epoch != NO_EPOCH
            and (not request.state_filters or now.state in states)
            and (not producers or now.producer_id in producers)
            and (request.duration_filter < 0 or now.started_ms < begun_before_ms)
            and (pattern is None or pattern.matches(each.transactional_id))
        ):
            chosen.append(
                TransactionState(
                    transactional_id=each.transactional_id,
                    producer_id=now.producer_id,
                    transaction_state=now.state.label,
                )
            )
        yield
    return chosen


def _refuse(code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, unknown_state_filters=(), transaction_states=())


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    yield
    call.amend = filtered(
        "transaction_states", lambda state: rights.sees(DESCRIBE, TRANSACTIONAL_ID, state.transactional_id)
    )
    return None


RIGHTS: Final = guard
