"""AlterPartition: one request under way, and answers that count only for the change they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from ixion.broker.replica import isr_changes
from ixion.broker.replica.controller_channel import ControllerChannel
from ixion.broker.replica.isr_changes import IsrChanges
from ixion.clients.faults import DisconnectedError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.replica.nodes import TOPIC_ID, Nodes, codes


class Controller:
    """Holds requests until the test answers them."""

    def __init__(self) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self.waiting: list[asyncio.Future[Struct]] = []
        self.connected = asyncio.Event()
        self.connected.set()
        self.asked_versions = 0

    async def version(self, _api: ApiKey, *, oldest: int, newest: int) -> int:
        self.asked_versions += 1
        await self.connected.wait()
        return newest

    async def ask(self, _api: ApiKey, _version: int, request: Struct) -> Struct:
        assert isinstance(request, AlterPartitionRequest)
        self.requests.append(request)
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]

    def fail(self, error: KafkaError) -> None:
        self.waiting[-1].set_exception(error)

    def answer(
        self, code: int = 0, *, isr: tuple[int, ...] = (), leader_epoch: int = 0, partition_epoch: int = 1, top: int = 0
    ) -> None:
        data = ResponsePartitionData(
            partition_index=0,
            error_code=code,
            leader_id=1,
            leader_epoch=leader_epoch,
            isr=isr,
            partition_epoch=partition_epoch,
        )
        topics = () if top else (ResponseTopicData(topic_id=TOPIC_ID, partitions=(data,)),)
        self.waiting[-1].set_result(AlterPartitionResponse(throttle_time_ms=0, error_code=top, topics=topics))

    @property
    def members(self) -> list[tuple[int, int]]:
        (data,) = self.requests[-1].topics[0].partitions
        return [(each.broker_id, each.broker_epoch) for each in data.new_isr_with_epochs]


def run(path: Path, work: Callable[[Nodes, Controller], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker 1 leads, 2 is in sync, 3 is about to join."""
    monkeypatch.setattr(isr_changes, "PAUSE_S", 0.0)
    monkeypatch.setattr(isr_changes, "FAULT_PAUSE_S", 0.0)

    async def bounded() -> None:
        nodes, controller = Nodes(path), Controller()
        replicas = nodes.nodes[1].replicas
        changes = IsrChanges(replicas, cast(ControllerChannel, controller), lambda: 101)
        replicas.on_isr_wanted = changes.wanted
        try:
            await nodes.lead(1, isr=(1, 2))
            await nodes.settle()
            assert controller.members == [(1, 101), (2, 102), (3, 103)]
            await asyncio.wait_for(work(nodes, controller), 30)
        finally:
            await changes.close()
            await nodes.close()

    asyncio.run(bounded())


def test_a_confirmed_change_is_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(nodes: Nodes, controller: Controller) -> None:
        partition = nodes.nodes[1].partition
        assert list(partition.isr) == [1, 2]
        controller.answer(isr=(1, 2, 3), partition_epoch=1)
        await nodes.settle(5)
        assert partition.isr == (1, 2, 3)
        assert partition.partition_epoch == 1
        await nodes.settle()
        assert len(controller.requests) == 1

    run(tmp_path, work, monkeypatch)


def test_a_joining_follower_counts_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(nodes: Nodes, controller: Controller) -> None:
        nodes.cut_off.add(3)
        over = nodes.nodes[1].produce(b"a")
        await nodes.settle()
        assert not over, "broker 3 may be in the ISR already"
        controller.answer(ErrorCode.INELIGIBLE_REPLICA)
        nodes.clock.advance(10_001)
        await nodes.settle()
        assert codes(over) == [ErrorCode.NONE]

    run(tmp_path, work, monkeypatch)


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.UNKNOWN_TOPIC_ID]
)
def test_an_overtaken_change_waits_for_leader_and_isr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: ErrorCode
) -> None:
    async def work(nodes: Nodes, controller: Controller) -> None:
        controller.answer(code)
        await nodes.settle()
        assert len(controller.requests) == 1
        await nodes.lead(1, isr=(1, 2))
        await nodes.settle()
        assert len(controller.requests) == 2, "the new role may ask"

    run(tmp_path, work, monkeypatch)


def test_a_change_of_an_earlier_role_is_not_asked_for_in_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role changes while the connection to the controller is being made. Under the new leader epoch the controller
    would write the earlier change, and the leader would not take the answer."""

    async def work(nodes: Nodes, controller: Controller) -> None:
        partition = nodes.nodes[1].partition
        controller.connected.clear()
        controller.fail(DisconnectedError("the controller has gone"))
        while controller.asked_versions < 2:
            await nodes.settle(1)
        await nodes.lead(1, isr=(1, 3))
        await nodes.settle()
        controller.connected.set()
        await nodes.settle()
        (data,) = controller.requests[-1].topics[0].partitions
        assert data.leader_epoch == partition.leader_epoch
        assert [number for number, _ in controller.members] == [1, 3, 2], "as the present role wants it"
        controller.answer(isr=(1, 3, 2), leader_epoch=partition.leader_epoch, partition_epoch=1)
        await nodes.settle()
        assert partition.isr == (1, 3, 2)
        assert len(controller.requests) == 2

    run(tmp_path, work, monkeypatch)


@pytest.mark.parametrize("order", ["answer first", "role first"])
def test_an_answer_of_the_past_does_not_overwrite_a_newer_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """KAFKA-12686, KAFKA-13091."""

    async def work(nodes: Nodes, controller: Controller) -> None:
        partition = nodes.nodes[1].partition
        nodes.cut_off.add(3)
        if order == "answer first":
            controller.answer(isr=(1, 2, 3), leader_epoch=0, partition_epoch=1)
            await nodes.settle(5)
        await nodes.lead(1, isr=(1, 2))
        partition.partition_epoch = 7
        if order == "role first":
            controller.answer(isr=(1, 2, 3), leader_epoch=0, partition_epoch=1)
        await nodes.settle()
        assert (partition.isr, partition.partition_epoch) == ((1, 2), 7)

    run(tmp_path, work, monkeypatch)


@pytest.mark.parametrize("fault", ["stale broker epoch", "not controller", "lost", "other code"])
def test_a_change_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    async def work(nodes: Nodes, controller: Controller) -> None:
        if fault == "stale broker epoch":
            controller.answer(top=ErrorCode.STALE_BROKER_EPOCH)
        elif fault == "not controller":
            controller.answer(top=ErrorCode.NOT_CONTROLLER)
        elif fault == "lost":
            controller.fail(DisconnectedError("gone"))
        else:
            controller.answer(ErrorCode.UNKNOWN_SERVER_ERROR)
        await nodes.settle()
        assert len(controller.requests) == 2
        assert controller.members == [(1, 101), (2, 102), (3, 103)]
        controller.answer(isr=(1, 2, 3))
        await nodes.settle()
        assert nodes.nodes[1].partition.isr == (1, 2, 3)

    run(tmp_path, work, monkeypatch)


def test_a_follower_that_restarts_meanwhile_does_not_join_for_what_it_had_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KIP-903: it may have come back with an empty disk, so the controller must see under which epoch it caught up."""

    async def work(nodes: Nodes, controller: Controller) -> None:
        nodes.cut_off.add(3)
        nodes.nodes[1].produce(b"a")
        nodes.nodes[1].partition.follower_fetched(3, 0, 0, broker_epoch=203)
        controller.answer(top=ErrorCode.NOT_CONTROLLER)
        await nodes.settle(5)
        assert len(controller.requests) == 2
        assert controller.members == [(1, 101), (2, 102), (3, 103)]

    run(tmp_path, work, monkeypatch)
