"""The timer for threads: any thread adds and cancels, one thread advances the clock, another runs expired tasks.

A thin shell around the core. It has one mutex where Kafka has a read lock for adding and a write lock for advancing:
under the interpreter lock two threads never add at the same time, so a read lock would gain nothing. The mutex is held
for one insertion, one removal, or the emptying of due buckets; never while a task runs or a thread sleeps.

The thread in `advance_clock` sleeps on `_signal` until the next bucket is due. A thread that adds a task which is due
sooner, advances a manual clock or shuts the timer down raises the signal (`_wake`). No wake-up is lost, because
`_sleeping` is set and tested under the mutex:

    1. the sleeper, holding the mutex, finds nothing due, sets `_sleeping`, releases the mutex and waits on the signal
    2. the adder, holding the mutex, places a task that is due first, sees `_sleeping`, clears it, raises the signal
    3. if the adder comes before 1, the sleeper finds its task in the queue

Lock order: `_advancing`, then `_mutex`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from ixion._native import i64
from ixion.timer.clock import NS_PER_MS, Clock, ManualClock, system_clock
from ixion.timer.core import DUE, WAITS, TimerCore
from ixion.timer.delay_queue import NEVER
from ixion.timer.mutex import Mutex
from ixion.timer.snapshot import TimerSnapshot
from ixion.timer.task import TimerTask, adopt, cancel
from ixion.timer.timer import Timer, TimerClosedError
from ixion.timer.worker import Worker

log = logging.getLogger(__name__)

MAX_WAIT_MS: Final = 86_400_000  # a day in one call of advance_clock: well inside what a lock's timeout accepts


class SystemTimer(Timer):
    """A hierarchical timing wheel that any thread may use.

    `executor` is called with each expired task and must run it (`task.run()`, or elsewhere `timer.run_task(task)`); the
    default is one worker thread. `clock` returns nanoseconds and never goes back. With a tick of 1 ms no task runs
    before its delay has passed; with a coarser tick it may run early by less than a tick, because a bucket is due at
    its beginning.
    """

    __slots__ = (
        "_advancing",
        "_clock",
        "_closed",
        "_core",
        "_executor",
        "_manual",
        "_mutex",
        "_signal",
        "_sleeping",
        "_sleeping_until_ms",
        "_worker",
    )

    def __init__(
        self,
        name: str,
        *,
        tick_ms: int = 1,
        wheel_size: int = 20,
        clock: Clock = system_clock,
        executor: Callable[[TimerTask], object] | None = None,
    ) -> None:
        super().__init__(name)
        self._clock = clock
        self._core = TimerCore(tick_ms, wheel_size, clock() // NS_PER_MS)
        self._mutex = Mutex()
        self._advancing = threading.Lock()
        self._signal = threading.Lock()  # raised = unlocked
        self._signal.acquire()
        self._sleeping = False
        self._sleeping_until_ms: i64 = NEVER
        self._closed = False
        self._worker = Worker(name, self.run_task)
        self._executor = executor
        self._manual: ManualClock | None = None
        if isinstance(clock, ManualClock):
            self._manual = clock
            clock.subscribe(self._on_clock_advanced)

    def add(self, task: TimerTask) -> bool:
        if self._closed:
            raise TimerClosedError(f"timer {self.name} has been shut down")
        now_ns: i64 = self._clock()
        adopt(task, self)
        self._mutex.acquire()
        try:
            if self._closed:  # a moment ago, by another thread
                raise TimerClosedError(f"timer {self.name} has been shut down")
            placed = self._core.place(task, now_ns)
            if self._sleeping and self._core.queue.head_ms < self._sleeping_until_ms:
                self._wake()
        finally:
            self._mutex.release()
        if placed == DUE:
            self._execute([task])
        return placed == WAITS

    def withdraw(self, task: TimerTask, for_good: bool) -> bool:
        self._mutex.acquire()
        try:
            here = task._timer is self
            taken_out = here and self._core.discard(task, for_good)
        finally:
            self._mutex.release()
        # another thread may have moved the task to another timer just now: cancel it there
        return taken_out if here or not for_good else cancel(task)

    def advance_clock(self, timeout_ms: int) -> bool:
        """Wait at most `timeout_ms` for the next due bucket; run due tasks. True if the clock moved."""
        give_up_ns: i64 = time.monotonic_ns() + min(max(0, timeout_ms), MAX_WAIT_MS) * NS_PER_MS
        with self._advancing:
            due = self._wait_for_due(give_up_ns)
        if due:
            self._execute(due)
        return due is not None

    @property
    def size(self) -> int:
        return self._core.size

    def snapshot(self) -> TimerSnapshot:
        now_ms = self._clock() // NS_PER_MS
        self._mutex.acquire()
        try:
            return self._core.snapshot(self.name, now_ms)
        finally:
            self._mutex.release()

    def tasks(self, level: int, index: int, most: int) -> list[TimerTask]:
        self._mutex.acquire()
        try:
            return self._core.tasks(level, index, most)
        finally:
            self._mutex.release()

    def shutdown(self) -> None:
        self._mutex.acquire()
        self._closed = True
        self._core.clear()
        self._wake()
        self._mutex.release()
        if self._manual is not None:
            self._manual.unsubscribe(self._on_clock_advanced)
        self._worker.stop()

    def count_failure(self) -> None:
        self._mutex.acquire()
        self._core.failed += 1
        self._mutex.release()

    def _wait_for_due(self, give_up_ns: i64) -> list[TimerTask] | None:
        """Turn the wheel, sleeping until a bucket is due. None if none was due in time, or the timer was closed."""
        while True:
            now_ns: i64 = self._clock()
            self._mutex.acquire()
            try:
                due = self._core.expire(now_ns // NS_PER_MS)
                left_ns = give_up_ns - time.monotonic_ns()
                if due is not None or self._closed or left_ns <= 0:
                    return due
                self._sleeping = True
                self._sleeping_until_ms = self._core.queue.head_ms
            finally:
                self._mutex.release()
            self._sleep(left_ns, now_ns)

    def _execute(self, due: list[TimerTask]) -> None:
        executor = self._executor
        if executor is None:
            self._worker.submit(due)
            return
        for task in due:
            try:
                executor(task)
            except Exception:
                self.count_failure()
                log.exception("timer %s: running task %s raised", self.name, task.describe())

    def _sleep(self, at_most_ns: i64, now_ns: i64) -> None:
        """Wait for the signal or the next bucket. Afterwards the signal is lowered in any case."""
        wait_ns = at_most_ns
        if self._manual is None and self._sleeping_until_ms != NEVER:  # a manual clock does not follow real time
            wait_ns = min(wait_ns, self._sleeping_until_ms * NS_PER_MS - now_ns)
        raised = wait_ns > 0 and self._signal.acquire(timeout=float(wait_ns) / 1e9)
        self._mutex.acquire()
        if not raised and not self._sleeping:  # raised after the wait was over
            self._signal.acquire()
        self._sleeping = False
        self._mutex.release()

    def _wake(self) -> None:
        """Call with the mutex held."""
        if self._sleeping:
            self._sleeping = False
            self._signal.release()

    def _on_clock_advanced(self) -> None:
        self._mutex.acquire()
        self._wake()
        self._mutex.release()
