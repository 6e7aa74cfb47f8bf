"""Keeps delayed operations in the watch lists of their keys, and in a timer.

`try_complete_else_watch` tries to complete the operation, adds it to the watch list of every key, tries again, and then
starts the timeout. The second try is needed for an event between the first try and the watching, which found no
operation in the lists. After that, every event finds the operation.

For each event call `check_and_complete(key)`: it tries the operations that watch the key, and returns how many it
completed.

Completed operations may remain in the watch lists of other keys. When there are more than `purge_interval` of them,
they are purged. (One difference from Kafka: while very many operations wait, we purge only when a quarter as many have
completed, because a purge must walk past all waiting operations, and its cost should stay in proportion.)

A reaper thread advances the clock, or, if the timer is a `LoopTimer`, its event loop does, without a thread. With
`reaper=False` the caller does, with `advance_clock`.

Lock order: none nests. A shard's mutex, the operations' mutex and the timer's are each taken alone, and none is held
while an operation's methods run.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Iterable
from typing import Final

from ixion._native import i64
from ixion.purgatory.operation import FLAGS, DelayedOperation, abandon, safe_try_complete
from ixion.purgatory.purge import Purge
from ixion.purgatory.reaper import Reaper
from ixion.purgatory.snapshot import PurgatorySnapshot
from ixion.purgatory.watchers import WatcherShard
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.system_timer import SystemTimer
from ixion.timer.timer import Timer, TimerClosedError
from ixion.timer.turns import Steps

log = logging.getLogger(__name__)

HASH: Final = hash
REAP_MS: Final = 200  # how long the reaper waits for a bucket before it checks whether a purge is due
# Between two turns of a purge the thread gives others the interpreter. A sleep of 0 would end before they have woken
# up, and they would wait for the 5 ms after which Python forces a switch. (The longest pause in a purge of 340
# thousand, collector off, went from 13.6 to 3.3 ms, one run each.)
PAUSE_SECONDS: Final = 0.0001
STEPS_PER_TURN: Final = 8  # chunks purged before others get their turn: some 4,000 entries, 0.3 to 1.4 ms


class DelayedOperationPurgatory:
    def __init__(
        self,
        name: str,
        *,
        timer: Timer | None = None,
        reaper: bool = True,
        purge_interval: int = 1000,
        shards: int = 512,
    ) -> None:
        if shards < 1:
            raise ValueError(f"shards must be at least 1, not {shards}")
        if purge_interval < 0:
            raise ValueError(f"purge_interval must not be negative, but is {purge_interval}")
        self.name = name
        self.purge_interval = purge_interval
        self.timer: Timer = SystemTimer(name) if timer is None else timer
        self._owns_timer = timer is None
        self._shards = [WatcherShard() for _ in range(shards)]
        self._delayed: i64 = 0  # guarded by FLAGS, like the next one
        self._estimated: i64 = 0  # watched operations; includes completed ones until the next purge
        self._completed_at_once = 0
        self._completed_by_check = 0
        self._purged = 0
        self._failed = 0
        self._purge: Purge | None = None  # the running purge
        self._closed = False
        self._loop_driven = isinstance(self.timer, LoopTimer)
        self._reaper: Reaper | None = None
        if reaper and not self._loop_driven:
            self._reaper = Reaper(f"ExpirationReaper-{name}", self._reap)

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Complete the operation now if its condition holds; otherwise let it wait for its keys and its timeout.

        True if this call completed it.
        """
        if self._closed:
            raise TimerClosedError(f"purgatory {self.name} has been shut down")
        watch_keys = list(keys)
        if not watch_keys:
            raise ValueError("an operation must watch at least one key, or only its timeout could complete it")
        if self._attempt(operation):
            self._completed_at_once += 1
            return True
        self._watch(operation, watch_keys)
        if self._attempt(operation):
            self._completed_at_once += 1
            return True
        self._start_timeout(operation)
        return False

    def watch_in_steps(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> Steps[bool]:
        """As `try_complete_else_watch`, for very many keys, one per step. The operation needs a `try_complete_for` that
        checks one key.

        Each key is watched before it is checked, so no event is missed. The timeout starts after the last key. If the
        operation is completed or abandoned before, the steps end.
        """
        if self._closed:
            raise TimerClosedError(f"purgatory {self.name} has been shut down")
        for number, key in enumerate(keys):
            if operation._completed or operation._dropped:
                return False
            self._watch(operation, [key], number == 0)
            if self._attempt(operation, key):
                self._completed_at_once += 1
                return True
            yield
        self._start_timeout(operation)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Try every operation that watches the key; returns how many this call completed."""
        shard = self._shard(key)
        if key not in shard.by_key:  # the common case, a key that no operation watches: no lock
            return 0
        completed = 0
        over = False
        for operation in shard.operations(key):
            if operation._completed or operation._dropped:
                over = True
            elif self._attempt(operation, key):
                completed += 1
                over = True
        if over:
            chunk = 0
            while chunk >= 0:
                _, chunk = shard.remove_gone(key, chunk)
        self._completed_by_check += completed
        return completed

    def cancel_for_key(self, key: Hashable) -> list[DelayedOperation]:
        """Abandon the operations that watch the key. Returns them; they are not completed."""
        return [operation for operation in self._shard(key).forget(key) if abandon(operation)]

    @property
    def watched(self) -> int:
        """Entries in all watch lists: an operation that watches three keys counts three times until it is purged."""
        return sum([shard.count() for shard in self._shards if shard.by_key])

    @property
    def delayed(self) -> int:
        """Operations that wait for their condition or their timeout."""
        return self._delayed

    def advance_clock(self, timeout_ms: int) -> bool:
        """Advance the timer, waiting at most `timeout_ms`, then purge if that is due. For callers without a reaper."""
        moved = self._advance_timer(timeout_ms)
        if self._purge_is_due():
            self.purge()
        return moved

    def purge(self) -> int:
        """Remove completed operations from the watch lists, with pauses for other threads. Returns how many."""
        purge = self._new_purge()
        while self._purge_some(purge):
            time.sleep(PAUSE_SECONDS)
        return purge.purged

    def snapshot(self) -> PurgatorySnapshot:
        return PurgatorySnapshot(
            name=self.name,
            watched=self.watched,
            delayed=self.delayed,
            keys=sum([len(shard.by_key) for shard in self._shards]),
            completed_at_once=self._completed_at_once,
            completed_by_check=self._completed_by_check,
            purged=self._purged,
            failed=self._failed,
            timer=self.timer.snapshot(),
        )

    def watched_keys(self) -> list[Hashable]:
        """The keys with a watch list, in no order. The list is made at once: 10 ms for 100,000 keys."""
        found: list[Hashable] = []
        for shard in self._shards:
            if shard.by_key:
                found.extend(shard.keys())
        return found

    def waiting_for(self, key: Hashable, most: int) -> tuple[int, list[DelayedOperation]]:
        """How many entries the watch list of the key has, and the first operations that still wait."""
        return self._shard(key).waiting(key, most)

    def shutdown(self) -> None:
        """Stop the reaper, and the timer if it was made here. Waiting operations are not completed."""
        self._closed = True
        reaper = self._reaper
        if reaper is not None:
            reaper.stop()
        if self._owns_timer:
            self.timer.shutdown()  # wakes a reaper that sleeps in it
        if reaper is not None:
            reaper.join()

    def _shard(self, key: Hashable) -> WatcherShard:
        hashed: i64 = HASH(key)
        return self._shards[hashed % len(self._shards)]

    def _attempt(self, operation: DelayedOperation, key: Hashable | None = None) -> bool:
        try:
            return safe_try_complete(operation, key)
        except Exception:
            self._failed += 1
            log.exception("purgatory %s: operation %s raised", self.name, operation.describe())
            return operation._completed

    def _watch(self, operation: DelayedOperation, keys: list[Hashable], is_new: bool = True) -> None:
        if is_new:
            FLAGS.acquire()
            self._estimated += 1
            FLAGS.release()
        try:
            for key in keys:
                if operation._completed:  # by another thread; a purge removes it from the lists that have it
                    return
                self._shard(key).watch(key, operation)
        except TypeError:  # a key cannot be hashed: the operation must not wait
            operation._dropped = True
            raise

    def _start_timeout(self, operation: DelayedOperation) -> None:
        FLAGS.acquire()
        waits = not operation._completed and not operation._dropped
        if waits:
            operation._purgatory = self
            self._delayed += 1
        FLAGS.release()
        if waits:
            self.timer.add(operation)  # the timer refuses it if it was completed, and so cancelled, just now
        if self._loop_driven and self._purge is None and self._purge_is_due():
            self._purge = self._new_purge()
            self._purge_on_loop()

    def _advance_timer(self, timeout_ms: int) -> bool:
        timer = self.timer
        if isinstance(timer, SystemTimer):
            return timer.advance_clock(timeout_ms)
        if isinstance(timer, LoopTimer):
            return timer.advance_clock()
        raise TypeError(f"purgatory {self.name}: a {type(timer).__name__} advances by itself")

    def _purge_is_due(self) -> bool:
        over = self._estimated - self._delayed
        return over > self.purge_interval and over * 4 > self._delayed

    def _new_purge(self) -> Purge:
        FLAGS.acquire()
        self._estimated = self._delayed
        FLAGS.release()
        return Purge(self._shards)

    def _purge_some(self, purge: Purge) -> bool:
        """Run a few steps of a purge. False when it is finished."""
        before = purge.purged
        more = True
        for _ in range(STEPS_PER_TURN):
            more = purge.step()
            if not more:
                break
        self._purged += purge.purged - before
        return more

    def _purge_on_loop(self) -> None:
        """Run one turn of a purge on the event loop."""
        purge, timer = self._purge, self.timer
        assert purge is not None
        assert isinstance(timer, LoopTimer)
        if self._purge_some(purge):
            timer.loop.call_soon(self._purge_on_loop)
        else:
            self._purge = None

    def _reap(self) -> None:
        """A turn of the reaper: advance the clock, then run a little of a purge if one is running."""
        self._advance_timer(REAP_MS if self._purge is None else 0)
        if self._purge is None and self._purge_is_due():
            self._purge = self._new_purge()
        purge = self._purge
        if purge is not None:
            if not self._purge_some(purge):
                self._purge = None
            time.sleep(PAUSE_SECONDS)
