"""DescribeTransactions, 0: state, producer and partitions of transactional ids coordinated here (KIP-664)."""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.coordinators.txn.snapshot import Snapshot
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from ixion.timer.turns import Steps


def make(services: Services) -> Handle:
    transactions = services.transactions

    def handle(call: Call) -> Steps[DescribeTransactionsResponse]:
        request = cast(DescribeTransactionsRequest, call.body)
        states: list[TransactionState] = []
        for transactional_id in request.transactional_ids:
            states.append(_describe(transactional_id, transactions.describe(transactional_id)))
            yield
        return DescribeTransactionsResponse(transaction_states=tuple(states))

    return sliced(handle)


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
