"""Aborts open transactions that exceed their timeout, and forgets unused transactional ids."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from ixion.broker.coordinators.txn.snapshot import NO_PARTITIONS
from ixion.broker.coordinators.txn.states import SETTLED, State
from ixion.broker.coordinators.txn.store import TransactionShard, TransactionStore
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.config.dynamic import DynamicConfig
from ixion.config.setting import Setting
from ixion.config.transaction_settings import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps, start_in_turns

logger = logging.getLogger(__name__)

TOMBSTONES_AT_ONCE: Final = 200  # in one batch, which is one step of a turn


class Expiration:
    def __init__(
        self,
        store: TransactionStore,
        abort: Callable[[TransactionShard, Transaction], None],
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
        self._running: set[str] = set()

    def start(self) -> None:
        self._repeat(TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS, self.abort_timed_out)
        self._repeat(TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS, self.forget_expired)

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def abort_timed_out(self) -> None:
        """Abort transactions that are open for longer than their producer allowed, and fence the producer."""
        self._run("aborting transactions that timed out", self._abort_late())

    def forget_expired(self) -> None:
        """Forget ids that no client has used for transactional.id.expiration.ms."""
        self._run("forgetting unused transactional ids", self._forget_silent())

    def _abort_late(self) -> Steps[None]:
        for shard in list(self._store.shards.values()):
            for transaction in list(shard.ongoing.values()):
                name = transaction.transactional_id
                if self._store.holds(shard) and name in shard.ongoing and is_late(transaction, self._clock_ms()):
                    logger.info("aborting a transaction of %r: open for over %d ms", name, transaction.now.timeout_ms)
                    self._abort(shard, transaction)
                yield

    def _forget_silent(self) -> Steps[None]:
        before_ms = self._clock_ms() - self._config.current[TRANSACTIONAL_ID_EXPIRATION_MS]
        for shard in list(self._store.shards.values()):
            some: list[Transaction] = []
            for transaction in list(shard.transactions.values()):
                if is_silent(transaction, before_ms):
                    some.append(transaction)
                if len(some) == TOMBSTONES_AT_ONCE:
                    self._forget(shard, some, before_ms)
                    some = []
                yield
            self._forget(shard, some, before_ms)

    def _forget(self, shard: TransactionShard, transactions: list[Transaction], before_ms: int) -> None:
        """Forget those that are still unused: some turns of the loop may have passed."""
        silent = [each for each in transactions if is_silent(each, before_ms)]
        if silent and self._store.holds(shard):
            for each in silent:
                each.prepare(replace(each.now, state=State.DEAD, partitions=NO_PARTITIONS))
            self._store.forget(shard, silent)

    def _run(self, name: str, steps: Steps[None]) -> None:
        """Run the steps in turns of the loop, unless the last run of this name has not finished."""
        if name not in self._running:
            self._running.add(name)
            start_in_turns(partial(self._timer.call_later, 0), steps, partial(self._ran, name))

    def _ran(self, name: str, _: None, error: Exception | None) -> None:
        self._running.discard(name)
        if error is not None:
            logger.error("%s failed", name, exc_info=error)

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
