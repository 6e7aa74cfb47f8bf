"""Each invariant of the simulator fails on a history that breaks it, and holds on the same history unbroken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from devtools.sim import run
from devtools.sim.broken import Broken
from devtools.sim.checks import Watcher, behind
from devtools.sim.workload import Sent
from ixion.broker.metadata.topic_node import PartitionState, Replicas
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition

KEY: TopicPartition = ("t", 0)
Log = dict[int, tuple[int, bytes]]


@dataclass
class FakeReplica:
    log: Log
    leads: bool = False
    epoch: int = 1
    high: int = 2


@dataclass
class FakeWorld:
    """Three brokers with the same two records; broker 1 leads."""

    leader: int = 1
    epoch: int = 1
    controller_epoch: int = 1
    isr: tuple[int, ...] = (1, 2, 3)
    registered: tuple[str, ...] = ("1", "2", "3")
    obeyed: int = 1
    knows_all: bool = True
    replicas_of: dict[int, FakeReplica] = field(default_factory=dict)
    sent: dict[tuple[int, TopicPartition], Sent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        log = {0: (1, b"a"), 1: (1, b"b")}
        self.replicas_of = {number: FakeReplica(dict(log), number == 1) for number in (1, 2, 3)}
        self.sent = {(0, KEY): Sent([b"a", b"b"], {b"a": 0, b"b": 1})}
        self.loop = SimpleNamespace(now_s=0.0)
        self.moments = SimpleNamespace(on_change=[], on_write=[], registered_s={})
        self.tree = SimpleNamespace(own=SimpleNamespace(children=lambda _: list(self.registered)))
        self.may_lose = self.losing = False
        self.slots = {number: self.slot(number) for number in (1, 2, 3)}

    def slot(self, number: int) -> Any:
        return SimpleNamespace(starts=1, lives=1, started_s=0.0, broker=self.broker(number))

    def broker(self, number: int) -> Any:
        made = self.replicas_of[number]
        log = SimpleNamespace(
            directory=SimpleNamespace(offline=False),
            closed=False,
            truncating=-1,
            high_watermark=made.high,
            end_offset=len(made.log),
        )
        partition = SimpleNamespace(leads=made.leads, log=log, leader_epoch=made.epoch)
        return SimpleNamespace(
            number=number,
            parts=SimpleNamespace(
                replicas=SimpleNamespace(partitions={KEY: partition}),
                image=SimpleNamespace(controller_epoch=self.obeyed),
            ),
        )

    def running(self) -> list[tuple[int, Any]]:
        for number, slot in self.slots.items():
            slot.broker = self.broker(number)
        return [(number, slot.broker) for number, slot in self.slots.items()]

    def state(self, _: TopicPartition) -> PartitionState:
        return PartitionState(
            leader=self.leader, leader_epoch=self.epoch, isr=self.isr, controller_epoch=self.controller_epoch
        )

    def replicas(self, _: TopicPartition) -> Replicas:
        return Replicas(all=(1, 2, 3))

    def all_know_all(self) -> bool:
        return self.knows_all

    async def until(self, condition: Callable[[], bool], _limit_s: float) -> bool:
        return condition()

    # What the checks see.

    def entries(self, broker: Any, key: TopicPartition, start: int = 0, below: int = 1 << 60) -> Log:
        log = self.replicas_of[broker.number].log if key == KEY else {}
        return {offset: entry for offset, entry in log.items() if start <= offset < below}

    def watcher(self) -> Watcher:
        world: Any = self
        return Watcher(world, [KEY], world, self.entries)

    def elect(self, number: int) -> None:
        self.leader, self.epoch = number, self.epoch + 1
        for other, replica in self.replicas_of.items():
            replica.leads, replica.epoch = other == number, self.epoch


def no_change(_: FakeWorld) -> None:
    """The history that holds."""


def leader_outside(world: FakeWorld) -> None:
    world.isr = (2, 3)


def nobody_in_sync(world: FakeWorld) -> None:
    world.leader, world.isr = -1, ()


def epoch_goes_back(world: FakeWorld) -> None:
    world.epoch = 0


def controller_goes_back(world: FakeWorld) -> None:
    world.controller_epoch = 0


def broker_obeys_the_past(world: FakeWorld) -> None:
    world.obeyed = 0


def two_leaders(world: FakeWorld) -> None:
    world.leader = 2


def follower_differs(world: FakeWorld) -> None:
    world.replicas_of[3].log[1] = (1, b"x")


def follower_lacks(world: FakeWorld) -> None:
    del world.replicas_of[3].log[1]


def new_leader_lacks(world: FakeWorld) -> None:
    for replica in world.replicas_of.values():
        replica.high = 1
        del replica.log[1]
    world.elect(2)


def new_leader_differs(world: FakeWorld) -> None:
    for replica in world.replicas_of.values():
        replica.log[1] = (2, b"b")
    world.elect(2)


WHILE_IT_RUNS = [
    (leader_outside, "LeaderInIsr"),
    (nobody_in_sync, "LeaderInIsr"),
    (epoch_goes_back, "MonotonicEpochs"),
    (controller_goes_back, "OneController"),
    (broker_obeys_the_past, "OneController"),
    (two_leaders, "OneLeaderPerEpoch"),
    (follower_differs, "StrongIsr"),
    (follower_lacks, "StrongIsr"),
    (new_leader_lacks, "LeaderCompleteness"),
    (new_leader_differs, "ConsistentRead"),
]


@pytest.mark.parametrize(("change", "invariant"), WHILE_IT_RUNS, ids=[each.__name__ for each, _ in WHILE_IT_RUNS])
def test_a_look_finds(change: Callable[[FakeWorld], None], invariant: str) -> None:
    world = FakeWorld()
    watcher = world.watcher()
    watcher.look()
    watcher.look()  # the same again is no change
    change(world)
    with pytest.raises(Broken) as broken:
        watcher.look()
    assert broken.value.invariant == invariant


def test_a_change_of_the_leader_holds() -> None:
    world = FakeWorld()
    watcher = world.watcher()
    watcher.look()
    world.elect(2)
    watcher.look()
    watcher.final()


def test_a_broker_that_starts_again_may_know_less() -> None:
    world = FakeWorld()
    watcher = world.watcher()
    watcher.look()
    world.obeyed, world.slots[1].starts, world.slots[2].starts, world.slots[3].starts = 0, 2, 2, 2
    watcher.look()


def test_a_write_of_a_controller_of_the_past_is_found() -> None:
    world = FakeWorld()
    watcher = world.watcher()
    (written,) = world.moments.on_write
    written(KEY, world.state(KEY), 1)
    watcher.look()
    written(KEY, world.state(KEY), 2)
    with pytest.raises(Broken, match="OneController"):
        watcher.look()


def test_a_broker_that_joins_the_isr_without_a_registration_is_found() -> None:
    world = FakeWorld(isr=(1, 2), registered=("1", "2"))
    watcher = world.watcher()
    watcher.look()
    world.loop.now_s += 2.0
    world.isr = (1, 2, 3)
    with pytest.raises(Broken, match="LiveIsr"):
        watcher.look()


def test_a_broker_that_has_just_lost_its_session_may_join_the_isr() -> None:
    """The controller does not know it yet; and the broker may have come and gone between two looks."""
    world = FakeWorld(isr=(1, 2), registered=("1", "2"))
    watcher = world.watcher()
    watcher.look()
    world.loop.now_s += 2.0
    world.isr = (1, 2, 3)
    world.moments.registered_s[3] = world.loop.now_s - 0.5
    watcher.look()


def lost(world: FakeWorld) -> None:
    world.sent[0, KEY].values.append(b"c")
    world.sent[0, KEY].acknowledged[b"c"] = 2


def twice(world: FakeWorld) -> None:
    for replica in world.replicas_of.values():
        replica.log[2] = (1, b"a")


def elsewhere(world: FakeWorld) -> None:
    world.sent[0, KEY].acknowledged[b"b"] = 7


def other_order(world: FakeWorld) -> None:
    world.sent[0, KEY].values.reverse()


def refused(world: FakeWorld) -> None:
    world.sent[0, KEY].failed[b"c"] = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def other_epoch(world: FakeWorld) -> None:
    world.replicas_of[2].log[1] = (0, b"b")


def gone_for_all(world: FakeWorld) -> None:
    for replica in world.replicas_of.values():
        replica.log[1] = (2, b"b")


AT_THE_END = [
    (lost, "NoAcknowledgedLoss"),
    (twice, "OnceOnly"),
    (elsewhere, "MonotonicOffsets"),
    (other_order, "Order"),
    (refused, "Sequence"),
    (other_epoch, "LogMatching"),
    (gone_for_all, "ConsistentRead"),
]


@pytest.mark.parametrize(("change", "invariant"), AT_THE_END, ids=[each.__name__ for each, _ in AT_THE_END])
def test_the_last_look_finds(change: Callable[[FakeWorld], None], invariant: str) -> None:
    world = FakeWorld()
    watcher = world.watcher()
    watcher.look()
    watcher.final()
    change(world)
    with pytest.raises(Broken) as broken:
        watcher.final()
    assert broken.value.invariant == invariant


def unknown_broker(world: FakeWorld) -> None:
    world.knows_all = False


def no_leader(world: FakeWorld) -> None:
    world.leader = -1


def out_of_sync(world: FakeWorld) -> None:
    world.isr = (1, 2)


def uncommitted(world: FakeWorld) -> None:
    world.replicas_of[1].high = 1


@pytest.mark.parametrize(
    "change",
    [unknown_broker, no_leader, out_of_sync, follower_lacks, uncommitted],
    ids=lambda change: change.__name__,
)
def test_a_cluster_that_is_not_healthy_in_time_is_found(change: Callable[[FakeWorld], None]) -> None:
    made = FakeWorld()
    world: Any = made
    world.running()
    asyncio.run(run.healthy_again(world, [KEY]))
    change(made)
    world.running()
    assert behind(world, [KEY])
    with pytest.raises(Broken, match="Healthy"):
        asyncio.run(run.healthy_again(world, [KEY]))


def test_a_cluster_that_acknowledges_nothing_any_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now_s=0.0)
    load: Any = SimpleNamespace(acknowledged=3)
    world: Any = SimpleNamespace(loop=clock)
    looks: list[float] = []
    watcher: Any = SimpleNamespace(look=lambda: looks.append(clock.now_s))

    async def sleep(seconds: float) -> None:
        clock.now_s += seconds
        load.acknowledged += serves

    monkeypatch.setattr(asyncio, "sleep", sleep)
    serves = 1
    asyncio.run(run.served_again(world, load, watcher))
    assert looks
    assert clock.now_s < run.HEALTHY_LIMIT_S
    serves = 0
    with pytest.raises(Broken, match="Healthy"):
        asyncio.run(run.served_again(world, load, watcher))
