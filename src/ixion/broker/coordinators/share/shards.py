"""The partitions of `__share_group_state` that this broker leads, loaded or being loaded, and writes to them.

A change is applied at once and written with all other changes of the same turn of the loop, as one batch; it is
answered when the batch is on all in-sync replicas. If a batch cannot be written, memory is ahead of the log, and the
partition is loaded again: until then its share partitions answer COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from sys import getsizeof
from typing import Final

from ixion.broker.coordinators.loader import STEP, Loader
from ixion.broker.coordinators.log_codes import COORDINATOR_CODES
from ixion.broker.coordinators.share.stored import Entry, States, Stored, replay
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import id_text
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.record import Record
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.turns import Steps

BATCH_BYTES: Final = 512 << 10  # a batch of this size is written before the turn ends
STATE_BYTES: Final = 1_200  # of a share partition in memory: its state with four columns, its key, entries of tables
RUN_BYTES: Final = 28

Appended = Callable[[ErrorCode, int], None]  # the code, and the offset of the first record of the change, or -1


class Draft:
    """Changes that are written as one batch."""

    __slots__ = ("builder", "waiting")

    def __init__(self) -> None:
        self.builder = BatchBuilder()
        self.waiting: list[tuple[int, Appended]] = []  # the number of the first record in the batch


class ShareShard:
    __slots__ = ("draft", "epoch", "failed", "held_bytes", "latest", "loaded", "number", "states")

    def __init__(self, number: int, epoch: int) -> None:
        self.number: Final = number
        self.epoch: Final = epoch
        self.loaded = False
        self.failed = False  # the log cannot be read; loading is tried again
        self.states: States = {}
        self.held_bytes = 0  # roughly, of `states`
        self.draft: Draft | None = None  # collects the changes of this turn
        self.latest: Draft | None = None  # the last batch that is not answered yet, perhaps the draft


def held_bytes(key: SharePartitionKey, state: Stored) -> int:
    return STATE_BYTES + getsizeof(key.group) + len(state.runs) * RUN_BYTES


class ShareShards:
    def __init__(self, log: CoordinatorLog, timer: LoopTimer, clock_ms: Callable[[], int]) -> None:
        self._log = log
        self._timer = timer
        self._clock_ms = clock_ms
        self._shards: dict[int, ShareShard] = {}
        self.loader = Loader(log, timer)

    def __iter__(self) -> Iterator[ShareShard]:
        return iter(list(self._shards.values()))

    @property
    def held_bytes(self) -> int:
        return sum(shard.held_bytes for shard in self._shards.values())

    def partition_for(self, key: SharePartitionKey) -> int:
        return self._log.partition_for(coordinator_key(key))

    def find(self, key: SharePartitionKey) -> ShareShard | ErrorCode:
        shard = self._shards.get(self.partition_for(key))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.loaded:
            return shard
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if shard.failed else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def holds(self, shard: ShareShard) -> bool:
        return self._shards.get(shard.number) is shard

    def elect(self, number: int, epoch: int) -> None:
        """Load a partition that this broker now leads. A leader epoch that is not newer is ignored."""
        known = self._shards.get(number)
        if known is None or epoch > known.epoch:
            self.resign(number)
            shard = self._shards[number] = ShareShard(number, epoch)
            self.loader.load(ShardLoad(self, shard))

    def resign(self, number: int) -> None:
        shard = self._shards.pop(number, None)
        if shard is not None:
            self.loader.forget(number)

    def clear(self) -> None:
        for number in list(self._shards):
            self.resign(number)

    def append(self, shard: ShareShard, records: Sequence[Entry], done: Appended) -> None:
        """Write records with this turn's batch. Without records, `done` is called once earlier changes are written."""
        draft = shard.draft
        if not records:
            if shard.latest is None:
                done(ErrorCode.NONE, -1)
            else:
                shard.latest.waiting.append((0, done))
            return
        if draft is None:
            draft = shard.draft = shard.latest = Draft()
            self._timer.loop.call_soon(self._write, shard, draft)
        builder = draft.builder
        draft.waiting.append((int(builder.count), done))
        now_ms = self._clock_ms()
        for key, value in records:
            builder.append(key, value, timestamp=now_ms)
        if builder.size_in_bytes >= BATCH_BYTES:
            self._write(shard, draft)

    def _write(self, shard: ShareShard, draft: Draft) -> None:
        if shard.draft is not draft:
            return  # it was large, and is written already
        shard.draft = None
        builder = draft.builder
        count = int(builder.count)

        def appended(code: ErrorCode, next_offset: int) -> None:
            if shard.latest is draft:
                shard.latest = None
            if code is not ErrorCode.NONE and self.holds(shard):
                self.resign(shard.number)
                self.elect(shard.number, shard.epoch)
            waiting, draft.waiting = draft.waiting, []
            for number, done in waiting:
                if code is ErrorCode.NONE:
                    done(code, next_offset - count + number)
                else:
                    done(COORDINATOR_CODES.get(code, code), -1)

        if self.holds(shard):
            self._log.append(shard.number, builder.build(), appended, whole=True)
        else:
            appended(ErrorCode.NOT_COORDINATOR, -1)


class ShardLoad:
    """What the loader needs of a shard."""

    def __init__(self, shards: ShareShards, shard: ShareShard) -> None:
        self._shards = shards
        self._shard = shard

    @property
    def partition(self) -> int:
        return self._shard.number

    def is_wanted(self) -> bool:
        return self._shards.holds(self._shard)

    def begin(self) -> None:
        self._shard.failed = False
        self._shard.states.clear()

    def control(self, _batch: BatchView) -> None:
        """The log of this topic has no control batches."""

    def replay(self, _batch: BatchView, record: Record) -> Steps[None] | None:
        return replay(record, self._shard.states)

    def finish(self) -> Steps[None]:
        shard = self._shard
        shard.held_bytes = 0
        for number, (key, state) in enumerate(list(shard.states.items())):
            shard.held_bytes += held_bytes(key, state)
            if number % STEP == STEP - 1:
                yield
        shard.loaded = True

    def fail(self) -> None:
        self._shard.failed = True


def coordinator_key(key: SharePartitionKey) -> str:
    """By which the partition of a share partition's state is found, and FindCoordinator its broker."""
    return f"{key.group}:{id_text(key.topic_id)}:{key.partition}"
