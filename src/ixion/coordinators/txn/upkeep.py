"""What happens by itself: open transactions run out of time, unused transactional ids are forgotten."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ixion.config.dynamic import DynamicConfig
from ixion.config.setting import Setting
from ixion.config.transaction_settings import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)
from ixion.coordinators.txn.snapshot import NO_PARTITIONS
from ixion.coordinators.txn.states import SETTLED, State
from ixion.coordinators.txn.store import Shard, TransactionStore
from ixion.coordinators.txn.transaction import Transaction
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

TOMBSTONES_AT_ONCE: Final = 1000  # in one batch
ABORTS_AT_ONCE: Final = 50  # in one turn of the loop; each writes two records and its markers, some 0.2 ms of work


class Upkeep:
    def __init__(
        self,
        store: TransactionStore,
        abort: Callable[[Shard, Transaction], None],
        *,
        timer: Timer,
        clock_ms: Callable[[], int],
        config: DynamicConfig,
    ) -> None:
        self._store = store
        self._abort = abort
        self._timer = timer
        self._clock_ms = clock_ms
        self._config = config
        self._tasks: dict[str, TimerTask] = {}

    def start(self) -> None:
        self._repeat(TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS, self.abort_timed_out)
        self._repeat(TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS, self.forget_expired)

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def abort_timed_out(self) -> None:
        """Transactions that are open for longer than their producer allowed end here, and the producer is fenced."""
        now_ms = self._clock_ms()
        late = [
            (shard, each)
            for shard in self._store.shards.values()
            for each in shard.ongoing.values()
            if is_late(each, now_ms)
        ]
        self._abort_some(late[::-1])

    def _abort_some(self, late: list[tuple[Shard, Transaction]]) -> None:
        """The last of them; the others when the loop has had its turn."""
        for _ in range(min(ABORTS_AT_ONCE, len(late))):
            shard, transaction = late.pop()
            name = transaction.transactional_id
            if self._store.holds(shard) and name in shard.ongoing and is_late(transaction, self._clock_ms()):
                logger.info("a transaction of %r took longer than %d ms", name, transaction.now.timeout_ms)
                self._abort(shard, transaction)
        if late:
            self._timer.call_later(0, self._abort_some, late)

    def forget_expired(self) -> None:
        """Ids that nobody has used for transactional.id.expiration.ms are forgotten, a shard per turn of the loop."""
        self._forget_in(list(self._store.shards.values()))

    def _forget_in(self, shards: list[Shard]) -> None:
        if not shards:
            return
        shard = shards.pop()
        before_ms = self._clock_ms() - self._config.current[TRANSACTIONAL_ID_EXPIRATION_MS]
        silent = [each for each in shard.transactions.values() if is_silent(each, before_ms)]
        for first in range(0, len(silent) if self._store.holds(shard) else 0, TOMBSTONES_AT_ONCE):
            some = silent[first : first + TOMBSTONES_AT_ONCE]
            for each in some:
                each.prepare(replace(each.now, state=State.DEAD, partitions=NO_PARTITIONS))
            self._store.forget(shard, some)
        self._timer.call_later(0, self._forget_in, shards)

    def _repeat(self, interval: Setting[int], task: Callable[[], None]) -> None:
        def run() -> None:
            self._repeat(interval, task)
            task()

        self._tasks[interval.name] = self._timer.call_later(self._config.current[interval], run)


def is_late(transaction: Transaction, now_ms: int) -> bool:
    now = transaction.now
    return not transaction.pending and now.started_ms + now.timeout_ms < now_ms


def is_silent(transaction: Transaction, before_ms: int) -> bool:
    now = transaction.now
    return now.state in SETTLED and not transaction.pending and now.updated_ms <= before_ms
