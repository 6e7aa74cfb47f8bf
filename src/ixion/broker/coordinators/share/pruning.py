"""Deletes what is no longer needed of the logs of `__share_group_state`.

A share partition needs its last snapshot and the updates behind it. So a log is needed from the oldest last snapshot
on. A share partition that rarely changes holds it back; after a while such a cold one is written again as a snapshot at
the end of the log, if much has been written behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ixion.broker.coordinators.share.shards import ShareShard, ShareShards
from ixion.broker.coordinators.share.stored import Stored
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.broker.replica.share_persister import SharePartitionKey
from ixion.config import share_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.task import TimerTask

WORTHWHILE: Final = 1_000  # records behind a snapshot that make it worthwhile to write it again
AT_ONCE: Final = 500  # snapshots written again in one round, for each log

Snapshot = Callable[[ShareShard, SharePartitionKey, Stored, Callable[[ErrorCode], None]], None]


class PrunableLog(CoordinatorLog, Protocol):
    def start(self, partition: int) -> int:
        """The first offset of the log."""

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records before `offset`, which must be replicated."""


class Pruning:
    def __init__(
        self,
        log: PrunableLog,
        shards: ShareShards,
        timer: LoopTimer,
        clock_ms: Callable[[], int],
        config: DynamicConfig,
        snapshot: Snapshot,
    ) -> None:
        """`snapshot` writes the state of a share partition again."""
        self._log = log
        self._shards = shards
        self._timer = timer
        self._clock_ms = clock_ms
        self._config = config
        self._snapshot = snapshot
        self._next: TimerTask | None = None

    def start(self) -> None:
        self._next = self._timer.call_later(self._interval_ms, self._run)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def prune(self) -> None:
        for shard in self._shards:
            if shard.loaded:
                needed = self._needed_from(shard)
                if needed > self._log.start(shard.number):
                    self._log.delete_before(shard.number, needed)
                self._warm_up(shard)

    @property
    def _interval_ms(self) -> int:
        return self._config.current[settings.SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS]

    def _run(self) -> None:
        self.prune()
        self.start()

    def _needed_from(self, shard: ShareShard) -> int:
        """While the first snapshot of a state is being written, the log is left alone."""
        return min([state.snapshot_offset for state in shard.states.values()], default=self._log.end(shard.number))

    def _warm_up(self, shard: ShareShard) -> None:
        """Write the states of cold share partitions again, the oldest first."""
        now_ms = self._clock_ms()
        cold_ms = self._config.current[settings.SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS]
        before = self._log.end(shard.number) - max(WORTHWHILE, 4 * len(shard.states))
        cold = [
            (state.snapshot_offset, key)
            for key, state in shard.states.items()
            if 0 <= state.snapshot_offset < before and not 0 <= now_ms - state.written_ms < cold_ms
        ]
        for _, key in sorted(cold)[:AT_ONCE]:
            self._snapshot(shard, key, shard.states[key], lambda _: None)
