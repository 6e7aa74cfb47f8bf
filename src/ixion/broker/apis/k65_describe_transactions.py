"""DescribeTransactions, 0: state, producer and partitions of transactional ids coordinated here (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DESCRIBE, TOPIC, TRANSACTIONAL_ID
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_ID, sorted_out
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.coordinators.txn.snapshot import Snapshot
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"transactional_ids": once()}


def make(services: Services) -> Handle:
    transactions = services.transactions

    def handle(call: Call) -> Steps[DescribeTransactionsResponse]:
        request = cast(DescribeTransactionsRequest, call.body)
        states: list[TransactionState] = []
        for transactional_id in request.transactional_ids:
            states.append(_describe(transactional_id, transactions.describe(transactional_id)))
            yield
        return DescribeTransactionsResponse(transaction_states=tuple(states))

    return handle


def _describe(transactional_id: str, found: Snapshot | ErrorCode) -> TransactionState:
    if isinstance(found, ErrorCode):
        return TransactionState(
            error_code=found,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
    topics: dict[str, list[int]] = {}
    for name, number in sorted(found.partitions):
        topics.setdefault(name, []).append(number)
    return TransactionState(
        error_code=0,
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=tuple(TopicData(topic=name, partitions=tuple(numbers)) for name, numbers in topics.items()),
    )


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the transactional id; the response has only topics that the client may describe."""
    request = cast(DescribeTransactionsRequest, call.body)
    kept, others = yield from sorted_out(
        request.transactional_ids, lambda name: rights.may(DESCRIBE, TRANSACTIONAL_ID, name)
    )
    call.narrow(request.replace(transactional_ids=tuple(kept)))
    refused = [
        TransactionState(
            error_code=NO_ID,
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=(),
        )
        for name in others
    ]

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(DescribeTransactionsResponse, body)
        states: list[TransactionState] = []
        for state in answer.transaction_states:
            topics, hidden = yield from sorted_out(state.topics, lambda each: rights.sees(DESCRIBE, TOPIC, each.topic))
            states.append(state.replace(topics=tuple(topics)) if hidden else state)
            yield
        return answer.replace(transaction_states=(*states, *refused))

    call.amend = amend
    return None


RIGHTS: Final = guard
