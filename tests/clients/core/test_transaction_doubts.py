"""A commit whose answer does not come: what the caller may do meanwhile, and what it hears in the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ixion.clients.core.producer.settings import ProducerSettings
from ixion.clients.core.producer.transactions import Transactions
from ixion.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.protocol.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ixion.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ixion.protocol.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.wire import RequestFrame
from tests.clients.core.sim import Simulation, Wire
from tests.clients.fake import SPOKEN

TRANSACTIONAL = {ApiKey.FIND_COORDINATOR: 3, ApiKey.ADD_PARTITIONS_TO_TXN: 3, ApiKey.END_TXN: 4}  # newest version


class HeldCommits(Simulation):
    """One broker with transactions of the older protocol. It keeps the answer to EndTxn until `release`."""

    def __init__(self) -> None:
        super().__init__(5, ProducerSettings(transactional_id="books"), nodes=1, trouble=0.0)
        self.held: list[Callable[[], None]] = []
        self.ends: list[bool] = []
        assert self.machine.transactions is not None
        self.transactions: Transactions = self.machine.transactions
        self.transactions.init()
        self.run(5)
        self.transactions.begin()
        while not self.send(b"value", 0):
            self.run(0.1)  # for metadata

    def handle(self, wire: Wire, frame: RequestFrame) -> None:
        if frame.api_key == ApiKey.END_TXN:
            handle = super().handle
            self.held.append(lambda: handle(wire, frame))
        else:
            super().handle(wire, frame)

    def release(self) -> None:
        for answer in self.held:
            answer()
        self.held.clear()
        self.run(5)

    def _answer(self, node: int, request: Struct, fault: str) -> Struct:
        if isinstance(request, ApiVersionsRequest):
            spoken = {**{api: api.newest for api in SPOKEN}, **TRANSACTIONAL}
            entries = [
                ApiVersion(api_key=api, min_version=api.oldest, max_version=newest) for api, newest in spoken.items()
            ]
            return ApiVersionsResponse(error_code=0, api_keys=tuple(entries))
        if isinstance(request, FindCoordinatorRequest):
            return FindCoordinatorResponse(error_code=0, node_id=0)
        if isinstance(request, AddPartitionsToTxnRequest):
            topics = [
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=tuple(
                        AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=0)
                        for number in topic.partitions
                    ),
                )
                for topic in request.v3_and_below_topics
            ]
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=tuple(topics))
        if isinstance(request, EndTxnRequest):
            self.ends.append(request.committed)
            return EndTxnResponse(error_code=0)
        return super()._answer(node, request, fault)


def test_a_commit_that_is_in_doubt_cannot_be_aborted() -> None:
    """Else the abort would be reported as done, though the transaction was committed."""
    sim = HeldCommits()
    sim.machine.commit()
    sim.run(5)
    assert len(sim.held) == 1
    with pytest.raises(ValueError, match="call commit_transaction again"):
        sim.machine.abort()
    sim.machine.commit()  # goes on with the first
    sim.release()
    assert sim.transactions.is_settled
    assert sim.ends == [True]


def test_before_the_coordinator_is_asked_an_abort_is_possible() -> None:
    sim = HeldCommits()
    sim.machine.commit()
    sim.machine.abort()
    sim.run(5)
    sim.release()
    assert sim.transactions.is_settled
    assert sim.ends == []  # nothing had been written
