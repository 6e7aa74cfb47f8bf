"""The timer of one event loop: no thread, no lock.

The loop sleeps until the next bucket is due: one `loop.call_later` serves all waiting tasks, and is armed again only
when an earlier bucket comes up. Expired tasks run on the loop, in slices of `TURN_NS`, so that a million due tasks do
not block the sockets.

Call everything here on the loop's thread. With a `ManualClock`, `advance` wakes the loop, not real time.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from ixion._native import i64
from ixion.timer.clock import NS_PER_MS, Clock, ManualClock, system_clock
from ixion.timer.core import DUE, WAITS, TimerCore
from ixion.timer.delay_queue import NEVER
from ixion.timer.snapshot import TimerSnapshot
from ixion.timer.stall_watch import StallWatch
from ixion.timer.task import TimerTask, adopt
from ixion.timer.timer import Timer, TimerClosedError
from ixion.timer.turns import TURN_NS

if TYPE_CHECKING:
    import asyncio

SLICE: Final = 500  # tasks that run before the loop gets its turn, however quick they are
MAX_SLEEP_NS: Final = 3_600_000_000_000  # arm for an hour at most: loops do not accept delays of years


class LoopTimer(Timer):
    """A hierarchical timing wheel on an asyncio event loop; by default on the running one."""

    __slots__ = (
        "_armed_ms",
        "_clock",
        "_closed",
        "_core",
        "_due",
        "_handle",
        "_manual",
        "_running_due",
        "_stalls",
        "loop",
    )

    def __init__(
        self,
        name: str = "loop",
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        tick_ms: int = 1,
        wheel_size: int = 20,
        clock: Clock = system_clock,
        stalls: StallWatch | None = None,
    ) -> None:
        super().__init__(name)
        if loop is None:
            from asyncio import get_running_loop  # importing asyncio takes 40 ms: only a LoopTimer needs it

            loop = get_running_loop()
        self.loop = loop
        self._clock = clock
        self._stalls = stalls
        self._core = TimerCore(tick_ms, wheel_size, clock() // NS_PER_MS)
        self._handle: asyncio.TimerHandle | None = None
        self._armed_ms: i64 = NEVER  # when the handle fires
        self._due: deque[TimerTask] = deque()
        self._running_due = False
        self._closed = False
        self._manual: ManualClock | None = None
        if isinstance(clock, ManualClock):
            self._manual = clock
            clock.subscribe(self._on_clock_advanced)

    def add(self, task: TimerTask) -> bool:
        if self._closed:
            raise TimerClosedError(f"timer {self.name} has been shut down")
        now_ns: i64 = self._clock()
        adopt(task, self)
        core = self._core
        placed = core.place(task, now_ns)
        if placed == DUE:
            self._due.append(task)
            self._run_soon()
        elif core.queue.head_ms < self._armed_ms:
            self._arm(now_ns)
        return placed == WAITS

    def withdraw(self, task: TimerTask, for_good: bool) -> bool:
        return task._timer is self and self._core.discard(task, for_good)

    def advance_clock(self) -> bool:
        """Turn the wheel to the current time and run due tasks. True if the clock moved. The loop calls it."""
        now_ns: i64 = self._clock()
        due = self._core.expire(now_ns // NS_PER_MS)
        if due is not None:
            self._due.extend(due)
            self._run_slice()
        if not self._closed and self._core.queue.head_ms < self._armed_ms:
            self._arm(now_ns)
        return due is not None

    @property
    def size(self) -> int:
        return self._core.size

    def snapshot(self) -> TimerSnapshot:
        return self._core.snapshot(self.name, self._clock() // NS_PER_MS)

    def tasks(self, level: int, index: int, most: int) -> list[TimerTask]:
        return self._core.tasks(level, index, most)

    def shutdown(self) -> None:
        self._closed = True
        self._core.clear()
        self._due.clear()
        self._disarm()
        if self._manual is not None:
            self._manual.unsubscribe(self._on_clock_advanced)

    def count_failure(self) -> None:
        self._core.failed += 1

    def _arm(self, now_ns: i64) -> None:
        self._disarm()
        if self._manual is not None:
            return
        head_ms = self._core.queue.head_ms
        self._armed_ms = head_ms
        wait_ns = min(max(0, head_ms * NS_PER_MS - now_ns), MAX_SLEEP_NS)
        self._handle = self.loop.call_later(float(wait_ns) / 1e9, self._on_due)

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._armed_ms = NEVER

    def _on_due(self) -> None:
        self._handle = None
        self._armed_ms = NEVER
        self.advance_clock()

    def _on_clock_advanced(self) -> None:
        self.loop.call_soon_threadsafe(self._on_due)

    def _run_soon(self) -> None:
        if not self._running_due:
            self._running_due = True
            self.loop.call_soon(self._run_slice)

    def _run_slice(self) -> None:
        self._running_due = False
        due = self._due
        stalls = self._stalls
        until_ns: i64 = system_clock() + TURN_NS
        for _ in range(min(SLICE, len(due))):  # tasks that become due meanwhile run after the sockets' turn
            if not due:
                return  # shut down
            task = due.popleft()
            if stalls is not None:
                stalls.task = task
            self.run_task(task)
            if system_clock() >= until_ns:
                break
        if due:
            self._run_soon()
