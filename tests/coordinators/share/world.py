"""A share coordinator without a broker: a log in memory, a loop timer on a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from ixion.broker.coordinators.share.coordinator import ShareCoordinator
from ixion.broker.coordinators.share.shards import coordinator_key
from ixion.broker.replica.coordinator_log import Appended
from ixion.broker.replica.share_persister import SharePartitionKey, ShareState, StateBatch, StateUpdate
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.language.model.placement import partition_of
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_batches
from ixion.timer.clock import ManualClock
from ixion.timer.loop_timer import LoopTimer

START_MS = 1_700_000_000_000
TOPIC = bytes(range(16))


class FakeLog:
    """`__share_group_state` in memory, with offsets. While `holding`, appends wait; `fail_with` refuses them."""

    name = "__share_group_state"

    def __init__(self, partition_count: int = 3) -> None:
        self.partition_count = partition_count
        self.data = [bytearray() for _ in range(partition_count)]
        self.ends = [0] * partition_count
        self.starts = [0] * partition_count
        self.holding = False
        self.held: list[Callable[[], None]] = []
        self.fail_with = ErrorCode.NONE

    def partition_for(self, key: str) -> int:
        return partition_of(key, self.partition_count)

    def largest_batch(self, partition: int) -> int:
        return 1_048_588

    def leader_epoch(self, partition: int) -> int:
        return 0

    def append(self, partition: int, batch: bytes, done: Appended, *, whole: bool = False) -> None:
        def acknowledge() -> None:
            if self.fail_with:
                done(self.fail_with, -1)
                return
            stamped = bytearray(batch)
            stamped[:8] = self.ends[partition].to_bytes(8)
            self.data[partition] += stamped
            self.ends[partition] += len(list(BatchView(bytes(batch), 0).records()))
            done(ErrorCode.NONE, self.ends[partition])

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
        for batch in iter_batches(bytes(self.data[partition])):
            if int(batch.last_offset) >= self.starts[partition]:
                yield batch

    def start(self, partition: int) -> int:
        return self.starts[partition]

    def end(self, partition: int) -> int:
        return self.ends[partition]

    def delete_before(self, partition: int, offset: int) -> None:
        self.starts[partition] = offset

    def is_replicated(self, partition: int, end: int) -> bool:
        return True

    def follower_fetches(self, partition: int) -> dict[int, int] | None:
        return {}

    async def ensure(self) -> None:
        pass


class World:
    def __init__(self, **settings: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock(START_MS)
        self.timer = LoopTimer(loop=self.loop, clock=self.clock)
        self.log = FakeLog()
        self.missing: set[bytes] = set()
        self.config = DynamicConfig({name.replace("_", "."): value for name, value in settings.items()})
        self.coordinator = self.start()

    def start(self) -> ShareCoordinator:
        """A broker starts on the same log."""
        self.coordinator = ShareCoordinator(
            self.log,
            timer=self.timer,
            clock_ms=lambda: self.clock.now_ms,
            config=self.config,
            exists=lambda topic_id, _: topic_id not in self.missing,
        )
        for number in range(self.log.partition_count):
            self.coordinator.on_elected(number, 0)
        return self.coordinator

    def restart(self) -> None:
        self.coordinator.stop()
        self.start()
        self.turn()

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

    def ask(self, act: Callable[..., None], *arguments: Any) -> Any:
        """What the callback was called with, a tuple if that is several values; None if it was not called yet."""
        answers: list[Any] = []
        act(*arguments, lambda *given: answers.append(given if len(given) > 1 else given[0]))
        self.turn()
        assert len(answers) <= 1
        return answers[0] if answers else None

    def initialize(self, key: SharePartitionKey, epoch: int = 1, start: int = -1) -> ErrorCode | None:
        code: ErrorCode | None = self.ask(self.coordinator.initialize, key, epoch, start)
        return code

    def write(self, key: SharePartitionKey, change: StateUpdate) -> ErrorCode | None:
        code: ErrorCode | None = self.ask(self.coordinator.write, key, change)
        return code

    def read(self, key: SharePartitionKey, leader_epoch: int = -1) -> ShareState:
        code, state = self.ask(self.coordinator.read, key, leader_epoch)
        assert code == ErrorCode.NONE
        assert isinstance(state, ShareState)
        return state

    def records(self, key: SharePartitionKey) -> int:
        """How many records the log with this share partition has."""
        number = self.log.partition_for(coordinator_key(key))
        return self.log.end(number) - self.log.start(number)


def key_of(group: str = "g", partition: int = 0, topic_id: bytes = TOPIC) -> SharePartitionKey:
    key = SharePartitionKey(group, topic_id, partition)
    assert coordinator_key(key).count(":") == 2
    return key


def update(
    *batches: StateBatch, start: int = -1, state_epoch: int = 1, leader_epoch: int = 0, complete: int = -1
) -> StateUpdate:
    return StateUpdate(
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start,
        delivery_complete_count=complete,
        batches=batches,
    )
