"""Detects callbacks that block an event loop for too long, counts and logs them.

A turn is one callback of the loop: bytes that arrived, a task's next step, a bucket of the wheel. While it runs, no
other client is served. `begin` and `end` enclose a turn; a turn longer than `LIMIT_NS` is a stall. It is counted, and
logged with its cause: the API key of the last request, the last timer task, or the callback itself. Slices are limited
by time (see `turns`), so the last piece of a long turn is the one that made it long.

Two clocks. A turn takes long because it does much, or because the system ran another process. The latter is no fault of
the code, so each stall is also measured in processor time of its thread. Reading that costs 700 ns, too much for every
turn. So it is read at most once every `REFRESH_NS`, and after a long turn:

    read at 100.0 ms: 40 ms used      begin at 104.0      end at 180.0, read: 110 ms used
    the turn has used at least 110 - 40 - (104 - 100) = 66 ms: the time between both reads, minus that before the turn

Stalls confirmed by processor time are warnings; the others are logged as information. Loop thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic_ns, thread_time_ns
from typing import TYPE_CHECKING, Final

from ixion._native import i64, mypyc_attr

if TYPE_CHECKING:
    from ixion.timer.task import TimerTask

LIMIT_NS: Final = 50_000_000
REFRESH_NS: Final = 5_000_000
LOG_EVERY_NS: Final = 1_000_000_000  # at most one line per second; the next one counts those left out

log = logging.getLogger(__name__)


@mypyc_attr(allow_interpreted_subclasses=True)
class StallWatch:
    def __init__(
        self, clock: Callable[[], int] = monotonic_ns, processor_clock: Callable[[], int] = thread_time_ns
    ) -> None:
        self.enabled = True
        self.stalls: i64 = 0  # turns above the limit in wall-clock time
        self.busy_stalls: i64 = 0  # turns above the limit in processor time too
        self.longest_ns: i64 = 0
        self.longest_busy_ns: i64 = 0
        self.api_key: i64 = -1  # of the last request in this turn
        self.task: TimerTask | None = None  # the last timer task in this turn
        self._clock = clock
        self._processor_clock = processor_clock
        self._asked_ns: i64 = 0
        self._used_ns: i64 = 0  # processor time at its last reading
        self._logged_ns: i64 = -LOG_EVERY_NS
        self._left_out: i64 = 0  # stalls since the last line
        self._left_out_busy_ns: i64 = 0  # the longest of them
        self._left_out_by = ""  # and what it ran

    def begin(self) -> i64:
        """Start a turn; returns the current time."""
        now_ns: i64 = self._clock()
        if now_ns - self._asked_ns > REFRESH_NS:
            self._asked_ns = now_ns
            self._used_ns = self._processor_clock()
        return now_ns

    def end(self, begun_ns: i64, callback: object) -> None:
        took_ns: i64 = self._clock() - begun_ns
        if took_ns > LIMIT_NS and self.enabled:
            self._stalled(begun_ns, took_ns, callback)
        self.api_key = -1
        self.task = None

    def run(self, callback: Callable[..., object], *args: object) -> None:
        """Call it as a turn."""
        begun_ns = self.begin()
        try:
            callback(*args)
        finally:
            self.end(begun_ns, callback)

    def start_over(self) -> None:
        """Reset the counts, when the broker has started: from now on a stall is a fault."""
        self.stalls = self.busy_stalls = 0
        self.longest_ns = self.longest_busy_ns = 0
        self.enabled = True

    def report_rest(self) -> None:
        """Log the stalls that the last line did not include. Called when the broker stops."""
        if self._left_out:
            level = logging.WARNING if self._left_out_busy_ns > LIMIT_NS else logging.INFO
            log.log(level, "the event loop was held up %s", self._others())
            self._left_out = self._left_out_busy_ns = 0

    def _stalled(self, begun_ns: i64, took_ns: i64, callback: object) -> None:
        busy_ns: i64 = self._processor_clock() - self._used_ns - (begun_ns - self._asked_ns)
        busy_ns = min(max(busy_ns, 0), took_ns)
        self.stalls += 1
        self.longest_ns = max(self.longest_ns, took_ns)
        self.longest_busy_ns = max(self.longest_busy_ns, busy_ns)
        level = logging.INFO
        if busy_ns > LIMIT_NS:
            self.busy_stalls += 1
            level = logging.WARNING
        now_ns = begun_ns + took_ns
        if now_ns - self._logged_ns < LOG_EVERY_NS:
            self._left_out += 1
            if busy_ns >= self._left_out_busy_ns:
                self._left_out_busy_ns = busy_ns
                self._left_out_by = self._culprit(callback)
            return
        log.log(
            level,
            "the event loop was held up for %d ms (%d ms of processor time) by %s%s",
            took_ns // 1_000_000,
            busy_ns // 1_000_000,
            self._culprit(callback),
            f"; before that {self._others()}" if self._left_out else "",
        )
        self._logged_ns = now_ns
        self._left_out = self._left_out_busy_ns = 0

    def _others(self) -> str:
        most_ms = self._left_out_busy_ns // 1_000_000
        return f"{self._left_out} times, for {most_ms} ms of processor time at most, by {self._left_out_by}"

    def _culprit(self, callback: object) -> str:
        if self.api_key >= 0:
            return f"a request of API key {self.api_key}"
        task = self.task
        if task is not None:
            return f"timer task {task.describe()}"
        return f"callback {name_of(callback)}"


def name_of(callback: object) -> str:
    """A name that helps to find the code: the coroutine of a task's step, the function otherwise."""
    owner = getattr(callback, "__self__", None)
    get_coro = getattr(owner, "get_coro", None)
    if get_coro is not None:
        return str(getattr(get_coro(), "__qualname__", owner))
    return str(getattr(callback, "__qualname__", None) or type(callback).__qualname__)
