"""The share coordinator: initializes, reads, writes and deletes the stored state of share partitions.

    initialize   by the group coordinator, when a group subscribes to a topic or its offsets are altered: a fresh state
    read         by a new leader of the partition; from then on older leaders are refused
    write        by the leader, after acknowledgements, released records and expired locks
    delete       by the group coordinator
    summary      by the group coordinator, to describe offsets

Each request is checked against the state with everything that was written before it, in memory. It is answered when the
change is stored. Answers go to callbacks, each called once, perhaps before the method returns. Everything runs on the
event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ixion.broker.coordinators.loader import Loader
from ixion.broker.coordinators.share.pruning import PrunableLog, Pruning
from ixion.broker.coordinators.share.shards import RUN_BYTES, ShareShard, ShareShards, held_bytes
from ixion.broker.coordinators.share.stored import Entry, Stored, snapshot_record, tombstone, update_record
from ixion.broker.replica.share_persister import NO_COUNT, NO_OFFSET, SharePartitionKey, ShareState, StateUpdate
from ixion.config import share_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.timer.loop_timer import LoopTimer

# Kafka sets no bounds. Beyond these, new share partitions and new runs get COORDINATOR_NOT_AVAILABLE; the requests come
# from brokers, but any client may make a group and have its records deferred one by one.
MOST_BYTES: Final = 512 << 20  # of all states on this broker
MOST_RUNS: Final = 250_000  # of one share partition: 7 MB in memory and 5 MB in a snapshot
NO_EPOCH: Final = -1
RUNS_PER_UPDATE: Final = 10  # a large state is written again after more updates: 100,000 runs take some 0.2 s

Answered = Callable[[ErrorCode], None]
Read = Callable[[ErrorCode, ShareState | None], None]
Summarized = Callable[[ErrorCode, "Summary | None"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Where a share partition stands."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int


class ShareCoordinator:
    def __init__(
        self,
        log: PrunableLog,
        *,
        timer: LoopTimer,
        clock_ms: Callable[[], int],
        config: DynamicConfig,
        exists: Callable[[bytes, int], bool],
    ) -> None:
        """`exists` says whether the cluster has a partition, by topic id."""
        self.log = log
        self._clock_ms = clock_ms
        self._config = config
        self._exists = exists
        self.shards = ShareShards(log, timer, clock_ms)
        self._pruning = Pruning(log, self.shards, timer, clock_ms, config, self._snapshot)

    # Life.

    @property
    def loader(self) -> Loader:
        return self.shards.loader

    def start(self) -> None:
        self._pruning.start()

    def stop(self) -> None:
        self._pruning.stop()
        self.shards.clear()

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        self.shards.elect(partition, leader_epoch)

    def on_resigned(self, partition: int) -> None:
        self.shards.resign(partition)

    def prune(self) -> None:
        self._pruning.prune()

    # Requests.

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Answered) -> None:
        """Begin afresh at `start_offset`, or NO_OFFSET; records in flight are forgotten."""
        shard = self._shard_for(key)
        if isinstance(shard, ErrorCode):
            done(shard)
            return
        known = shard.states.get(key)
        if known is not None and state_epoch < known.state_epoch:
            done(ErrorCode.FENCED_STATE_EPOCH)
        elif known is None and self.shards.held_bytes >= MOST_BYTES:
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            state = Stored(
                snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
                state_epoch=state_epoch,
                leader_epoch=NO_EPOCH if known is None else known.leader_epoch,
                start_offset=start_offset,
            )
            state.complete_count = NO_COUNT if start_offset == NO_OFFSET else 0
            state.created_ms = state.written_ms = self._clock_ms()
            self._forget(shard, key)
            shard.states[key] = state
            shard.held_bytes += held_bytes(key, state)
            self._put_snapshot(shard, key, state, done)

    def read(self, key: SharePartitionKey, leader_epoch: int, done: Read) -> None:
        """A leader epoch of -1 reads without taking over."""
        found = self._find(key)
        if isinstance(found, ErrorCode):
            done(found, None)
            return
        shard, state = found
        if NO_EPOCH < leader_epoch < state.leader_epoch:
            done(ErrorCode.FENCED_LEADER_EPOCH, None)
            return
        seen = state.seen()

        def answer(code: ErrorCode, _: int) -> None:
            done(code, None if code else seen)

        if leader_epoch > state.leader_epoch:
            takes_over = StateUpdate(
                state_epoch=state.state_epoch,
                leader_epoch=leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.complete_count,
                batches=(),
            )
            self._update(shard, key, state, takes_over, answer)
        else:
            self.shards.append(shard, (), answer)

    def write(self, key: SharePartitionKey, update: StateUpdate, done: Answered) -> None:
        found = self._find(key)
        if isinstance(found, ErrorCode):
            done(found)
            return
        shard, state = found
        if update.leader_epoch < state.leader_epoch:
            done(ErrorCode.FENCED_LEADER_EPOCH)
        elif update.state_epoch < state.state_epoch:
            done(ErrorCode.FENCED_STATE_EPOCH)
        elif len(state.runs) + 2 * len(update.batches) > MOST_RUNS or not _is_sound(update):
            done(ErrorCode.INVALID_REQUEST)
        elif update.batches and self.shards.held_bytes >= MOST_BYTES:
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        else:
            self._update(shard, key, state, update, lambda code, _: done(code))

    def delete(self, key: SharePartitionKey, done: Answered) -> None:
        if not self._exists(key.topic_id, key.partition):
            done(ErrorCode.NONE)  # `forget_missing` deletes it
            return
        shard = self.shards.find(key)
        if isinstance(shard, ErrorCode):
            done(shard)
        else:
            known = key in shard.states
            self._forget(shard, key)
            self.shards.append(shard, (tombstone(key),) if known else (), lambda code, _: done(code))

    def summary(self, key: SharePartitionKey, done: Summarized) -> None:
        """A start of NO_OFFSET if nothing is stored."""
        shard = self._shard_for(key)
        if isinstance(shard, ErrorCode):
            done(shard, None)
            return
        state = shard.states.get(key)
        found = Summary(
            state_epoch=NO_EPOCH if state is None else state.state_epoch,
            leader_epoch=NO_EPOCH if state is None else state.leader_epoch,
            start_offset=NO_OFFSET if state is None else state.start_offset,
            complete_count=NO_COUNT if state is None else state.complete_count,
        )
        self.shards.append(shard, (), lambda code, _: done(code, None if code else found))

    def forget_missing(self) -> None:
        """Delete the states of partitions that the cluster no longer has."""
        for shard in self.shards:
            for key in [key for key in shard.states if not self._exists(key.topic_id, key.partition)]:
                self._forget(shard, key)
                self.shards.append(shard, (tombstone(key),), lambda *_: None)

    # Internals.

    def _shard_for(self, key: SharePartitionKey) -> ShareShard | ErrorCode:
        if not key.group or key.partition < 0:
            return ErrorCode.INVALID_REQUEST
        if not self._exists(key.topic_id, key.partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return self.shards.find(key)

    def _find(self, key: SharePartitionKey) -> tuple[ShareShard, Stored] | ErrorCode:
        shard = self._shard_for(key)
        if isinstance(shard, ErrorCode):
            return shard
        state = shard.states.get(key)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if state is None else (shard, state)

    def _forget(self, shard: ShareShard, key: SharePartitionKey) -> None:
        known = shard.states.pop(key, None)
        if known is not None:
            shard.held_bytes -= held_bytes(key, known)

    def _update(
        self,
        shard: ShareShard,
        key: SharePartitionKey,
        state: Stored,
        update: StateUpdate,
        done: Callable[[ErrorCode, int], None],
    ) -> None:
        before = len(state.runs)
        state.apply(update)
        shard.held_bytes += (len(state.runs) - before) * RUN_BYTES
        least = self._config.current[settings.SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT]
        if state.updates < max(least, len(state.runs) // RUNS_PER_UPDATE):
            self.shards.append(shard, (update_record(key, state.snapshot_epoch, update),), done)
        else:
            self._snapshot(shard, key, state, lambda code: done(code, -1))

    def _snapshot(self, shard: ShareShard, key: SharePartitionKey, state: Stored, done: Answered) -> None:
        """Write the whole state; records before it are no longer needed."""
        state.snapshot_epoch += 1
        state.written_ms = self._clock_ms()
        self._put_snapshot(shard, key, state, done)

    def _put_snapshot(self, shard: ShareShard, key: SharePartitionKey, state: Stored, done: Answered) -> None:
        state.updates = 0
        entry: Entry = snapshot_record(key, state)

        def written(code: ErrorCode, offset: int) -> None:
            if not code:
                state.snapshot_offset = max(state.snapshot_offset, offset)
            done(code)

        self.shards.append(shard, (entry,), written)


def _is_sound(update: StateUpdate) -> bool:
    return all(
        0 <= each.first <= each.last and 0 <= each.state <= 4 and 0 <= each.deliveries < 1 << 15
        for each in update.batches
    )
