"""A transaction coordinator without a broker: log and partitions obey the test, the real wheel has a manual clock.

Use it for rules, timeouts and faults of the log. For requests over the wire, see `tests/apis/txn_kit.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ixion.broker.coordinators.txn.coordinator import TransactionCoordinator
from ixion.broker.coordinators.txn.markers import Marker, Written
from ixion.broker.coordinators.txn.producer_ids import Background, Claimed, Claiming, ProducerIds
from ixion.broker.coordinators.txn.snapshot import Snapshot
from ixion.broker.coordinators.txn.storage import replay
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.broker.metadata.cluster_node import ProducerIdBlock
from ixion.broker.replica.coordinator_log import Appended
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.batch import BatchView
from ixion.timer.clock import ManualClock
from ixion.timer.loop_timer import LoopTimer
from tests.metadata.awaited import run

START_MS = 1_700_000_000_000


class FakeLog:
    """`__transaction_state` in memory. While `holding`, appends wait; `fail_with` refuses them."""

    name = "__transaction_state"

    def __init__(self, partition_count: int = 3) -> None:
        self.partition_count = partition_count
        self.batches: dict[int, list[bytes]] = {number: [] for number in range(partition_count)}
        self.holding = False
        self.held: list[Callable[[], None]] = []
        self.fail_with = ErrorCode.NONE
        self.unreadable: set[int] = set()

    def partition_for(self, key: str) -> int:
        return len(key) % self.partition_count

    def largest_batch(self, partition: int) -> int:
        return 1_048_588

    def leader_epoch(self, partition: int) -> int:
        return 0

    def append(self, partition: int, batch: bytes, done: Appended, *, whole: bool = False) -> None:
        def acknowledge() -> None:
            if self.fail_with:
                done(self.fail_with, -1)
            else:
                self.batches[partition].append(batch)
                done(ErrorCode.NONE, len(self.batches[partition]))

        if self.holding:
            self.held.append(acknowledge)
        else:
            acknowledge()

    def let_go(self) -> None:
        self.holding = False
        held, self.held = self.held, []
        for acknowledge in held:
            acknowledge()

    def read(self, partition: int) -> Iterator[BatchView]:
        if partition in self.unreadable:
            raise OSError(5, "no disk")
        for batch in list(self.batches[partition]):
            yield BatchView(batch, 0)

    def end(self, partition: int) -> int:
        return len(self.batches[partition])

    def is_replicated(self, partition: int, end: int) -> bool:
        return True

    def follower_fetches(self, partition: int) -> dict[int, int] | None:
        return {}

    async def ensure(self) -> None:
        pass

    def stored(self, transactional_id: str) -> Snapshot | None:
        found: dict[str, Snapshot] = {}
        for batch in self.read(self.partition_for(transactional_id)):
            for record in batch.records():
                replay(record, found)
        return found.get(transactional_id)


class FakeMarkers:
    """Partitions that take markers; those in `broken` answer with a code instead. While `holding`, nobody answers."""

    def __init__(self) -> None:
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.broken: dict[TopicPartition, ErrorCode] = {}
        self.holding = False
        self.held: list[tuple[Marker, Written]] = []

    def write(self, marker: Marker, done: Written) -> None:
        if self.holding:
            self.held.append((marker, done))
            return
        codes = {partition: self.broken.get(partition, ErrorCode.NONE) for partition in sorted(marker.partitions)}
        self.written += [(partition, marker) for partition, code in codes.items() if not code]
        done(codes)

    def let_go(self) -> None:
        self.holding = False
        held, self.held = self.held, []
        for marker, done in held:
            self.write(marker, done)

    def outcomes(self) -> list[tuple[TopicPartition, int, int, bool]]:
        return [(partition, each.producer_id, each.epoch, each.commit) for partition, each in self.written]


def at_once(claim: Callable[[], Claiming], then: Callable[[Claimed], None]) -> None:
    then(run(claim()))


class World:
    def __init__(self, version: int = 2, **settings: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock(START_MS)
        self.timer = LoopTimer(loop=self.loop, clock=self.clock)
        self.log = FakeLog()
        self.markers = FakeMarkers()
        self.missing: set[TopicPartition] = set()
        self.version = version
        self.config = DynamicConfig({name.replace("_", "."): value for name, value in settings.items()})
        self.next_block = 0
        self.background: Background = at_once
        self.coordinator = self.start()

    def start(self) -> TransactionCoordinator:
        """A broker starts on the same log."""
        self.coordinator = TransactionCoordinator(
            self.log,
            producer_ids=ProducerIds(self.claim, self.background),
            markers=self.markers,
            exists=lambda partition: partition not in self.missing,
            version=lambda: self.version,
            timer=self.timer,
            clock_ms=lambda: self.clock.now_ms,
            config=self.config,
        )
        for partition in range(self.log.partition_count):
            self.coordinator.on_elected(partition, 7)
        self.coordinator.start()
        return self.coordinator

    def restart(self) -> None:
        """The broker stops and starts again, and has read its log."""
        self.begin_restart()
        self.load()
        self.turn()

    def begin_restart(self) -> None:
        self.coordinator.stop()
        self.start()

    def load(self) -> int:
        """How many turns of the loop it took."""
        turns = 0
        while self.coordinator.list() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.turn()
            turns += 1
            assert turns < 10_000
        return turns

    async def claim(self, _lowest: int) -> ProducerIdBlock:
        first = self.next_block
        self.next_block += 1000
        return ProducerIdBlock(broker_id=1, first=first, last=first + 999)

    def turn(self) -> None:
        for _ in range(3):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.turn()

    def close(self) -> None:
        self.coordinator.stop()
        self.timer.shutdown()
        self.loop.close()

    # Requests, answered at once or not yet (None).

    def init(self, name: str, producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000) -> tuple[str, int, int]:
        heard: list[tuple[str, int, int]] = []
        self.coordinator.init_producer_id(
            name, timeout_ms, producer_id, epoch, lambda code, *who: heard.append((code.name, *who))
        )
        assert len(heard) <= 1
        return heard[0] if heard else ("WAITS", -1, -1)

    def add(self, name: str, producer_id: int, epoch: int, *partitions: TopicPartition, version: int = 2) -> str:
        heard: list[ErrorCode] = []
        self.coordinator.add_partitions(name, producer_id, epoch, partitions, version, heard.append)
        assert len(heard) <= 1
        return heard[0].name if heard else "WAITS"

    def end(
        self, name: str, producer_id: int, epoch: int, commit: bool = True, version: int = 2
    ) -> tuple[str, int, int]:
        heard: list[tuple[str, int, int]] = []
        self.coordinator.end(
            name, producer_id, epoch, commit, version, lambda code, *who: heard.append((code.name, *who))
        )
        assert len(heard) <= 1
        return heard[0] if heard else ("WAITS", -1, -1)

    def force(self, name: str, **changes: Any) -> None:
        """Puts an id where it would take thirty thousand transactions to come."""
        found = self.coordinator._store.find(name)
        assert isinstance(found, Transaction)
        found.now = replace(found.now, **changes)

    def state(self, name: str) -> Snapshot:
        found = self.coordinator.describe(name)
        assert isinstance(found, Snapshot), found
        return found
