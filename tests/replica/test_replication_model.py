"""Replication under random leader changes, cuts and restarts: nothing that was acknowledged is lost, and logs agree.

The controller of the model is honest: it elects from the ISR only, and tells brokers late or not at all. Each run draws
from its own seed; a failure names it. Rules that keep records safe are then taken away one by one, and the model must
notice each of them. (Two that rarely matter have tests of their own in `test_fetcher`: the high watermark is no place
to cut, and a follower joins the ISR at the start of the leader's epoch.)
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ixion.broker.log.log import Log
from ixion.broker.replica import fetcher as fetcher_module
from ixion.broker.replica.followed import Followed
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.results import AppendResult
from ixion.language.model.errors import ErrorCode
from tests.replica.nodes import Nodes

RUNS = 12
STEPS = 60


class LostError(AssertionError):
    """A rule of replication was broken."""


class Model:
    def __init__(self, nodes: Nodes, seed: int) -> None:
        self.nodes = nodes
        self.random = random.Random(seed)
        self.produced: list[tuple[bytes, list[AppendResult]]] = []
        self.acknowledged: list[bytes] = []
        self.told: dict[int, int] = dict.fromkeys(nodes.nodes, -1)  # the epoch that each broker knows

    async def run(self) -> None:
        await self.elect(1)
        for _ in range(STEPS):
            await self.random.choice(
                (self.produce, self.produce, self.produce, self.settle, self.settle, self.cut, self.heal, self.tell)
                + (self.fail_over, self.restart, self.shrink, self.grant)
            )()
            self.take_acknowledged()
        await self.finish()

    # What may happen.

    async def produce(self) -> None:
        node = self.nodes.nodes[self.random.choice(list(self.nodes.nodes))]
        if node.replicas.partitions and node.partition.leads:  # perhaps a leader of the past
            value = b"%d" % len(self.produced)
            self.produced.append((value, node.produce(value)))

    async def settle(self) -> None:
        await self.nodes.settle(self.random.randint(1, 12))

    async def cut(self) -> None:
        self.nodes.cut_off.add(self.random.choice(list(self.nodes.nodes)))

    async def heal(self) -> None:
        self.nodes.cut_off.discard(self.random.choice(list(self.nodes.nodes)))

    async def tell(self) -> None:
        number = self.random.choice(list(self.nodes.nodes))
        if self.told[number] != self.nodes.epoch:
            self.told[number] = self.nodes.epoch
            await self.nodes.tell(number)

    async def fail_over(self) -> None:
        await self.elect(self.random.choice(self.nodes.isr))

    async def elect(self, leader: int) -> None:
        """The new leader learns of it; the others may learn later. A leader that is cut off leaves the ISR."""
        isr = tuple(number for number in self.nodes.isr if number == leader or number not in self.nodes.cut_off)
        await self.nodes.lead(leader, told=(leader,), isr=isr)
        self.told[leader] = self.nodes.epoch

    async def restart(self) -> None:
        number = self.random.choice(list(self.nodes.nodes))
        await self.nodes.nodes[number].restart(clean=self.random.random() < 0.5)
        self.told[number] = -1
        if number == self.nodes.leader:
            await self.elect(self.random.choice(self.nodes.isr))

    async def shrink(self) -> None:
        self.nodes.clock.advance(10_001)
        for node in self.nodes.nodes.values():
            node.replicas.shrink_isr()

    async def grant(self) -> None:
        self.nodes.grant()

    # What must hold.

    def take_acknowledged(self) -> None:
        left = []
        for value, over in self.produced:
            if not over:
                left.append((value, over))
            elif over[0].code == ErrorCode.NONE:
                self.acknowledged.append(value)
        self.produced = left

    async def finish(self) -> None:
        """Everything heals. All replicas must agree, and hold every acknowledged record."""
        self.nodes.cut_off.clear()
        if self.told[self.nodes.leader] != self.nodes.epoch:
            await self.elect(self.nodes.leader)
        for number in self.nodes.nodes:
            if self.told[number] != self.nodes.epoch:
                await self.nodes.tell(number)
        for _ in range(20):
            await self.nodes.settle(30)
            self.nodes.grant()
        self.take_acknowledged()
        leader = self.nodes.nodes[self.nodes.leader]
        whole = leader.values()
        there = [value for _, _, value in whole]
        lost = [value for value in self.acknowledged if value not in there]
        if lost:
            raise LostError(f"{lost} of {len(self.acknowledged)} acknowledged are lost; the leader has {there}")
        if leader.partition.log.high_watermark != leader.partition.log.end_offset:
            raise LostError("the high watermark is stuck")
        for node in self.nodes.nodes.values():
            if node.values() != whole:
                raise LostError(f"broker {node.number} has {node.values()}, its leader {whole}")


def run(path: Path, seed: int) -> None:
    async def work() -> None:
        nodes = Nodes(path / str(seed))
        try:
            await asyncio.wait_for(Model(nodes, seed).run(), 60)
        finally:
            await nodes.close()

    asyncio.run(work())


@pytest.mark.parametrize("seed", range(RUNS))
def test_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed)


# Each rule taken away.


def never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer about a diverging epoch is ignored."""
    monkeypatch.setattr(fetcher_module, "cut_at", lambda log, _epoch, _end: log.end_offset)


def cut_to_the_leaders_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-279: a follower does not look where its own epochs ended."""

    def at(log: Log, _epoch: int, end: int) -> int:
        return min(end, log.end_offset)

    monkeypatch.setattr(fetcher_module, "cut_at", at)


def fetch_without_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-320: the leader is not told which epoch the follower knows, nor which it fetched last."""
    plain = Followed.wish

    def wish(self: Followed, max_bytes: int) -> object:
        return plain(self, max_bytes).replace(current_leader_epoch=-1, last_fetched_epoch=-1)

    monkeypatch.setattr(Followed, "wish", wish)


def acknowledge_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The high watermark does not wait for the in-sync replicas."""
    monkeypatch.setattr(
        Partition,
        "advance_high_watermark",
        lambda self: self.leads and self.log.raise_high_watermark(self.log.end_offset),
    )


MUTANTS = [
    never_cut,
    cut_to_the_leaders_end_only,
    fetch_without_epochs,
    acknowledge_at_once,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_each_rule_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    if hasattr(Partition, "__mypyc_attrs__"):
        pytest.skip("a fault replaces functions, which compiled code does not see")
    mutant(monkeypatch)
    for seed in range(60):
        try:
            run(tmp_path, seed)
        except (LostError, AssertionError, TimeoutError, ValueError):
            return
    pytest.fail(f"60 runs without the rule of {mutant.__name__}, and nothing was lost")
