"""The part that every timer shares: the wheel, its delay queue and the counts. No lock, no thread, no clock.

`place` puts a task in, `discard` takes it out, `expire` moves the wheel to a given time and returns the due tasks. The
caller serialises access and supplies the time.
"""

from __future__ import annotations

from typing import Final

from ixion._native import i64
from ixion.timer.clock import NS_PER_MS
from ixion.timer.delay_queue import NEVER, DelayQueue
from ixion.timer.snapshot import LevelSnapshot, TimerSnapshot
from ixion.timer.task import CANCELLED, TimerTask
from ixion.timer.wheel import TimingWheel

Placed = int
WAITS: Final = 0  # in the wheel
DUE: Final = 1  # to be run by the caller
REFUSED: Final = 2  # it was cancelled


class TimerCore:
    __slots__ = ("added", "cancelled", "expired", "failed", "queue", "size", "wheel")

    def __init__(self, tick_ms: int, wheel_size: int, start_ms: int) -> None:
        if tick_ms < 1:
            raise ValueError(f"tick_ms must be at least 1, not {tick_ms}")
        if wheel_size < 2:
            raise ValueError(f"wheel_size must be at least 2, not {wheel_size}")
        self.queue = DelayQueue()
        self.wheel = TimingWheel(tick_ms, wheel_size, start_ms, self.queue)
        self.size: i64 = 0
        self.added: i64 = 0
        self.cancelled: i64 = 0
        self.expired: i64 = 0
        self.failed: i64 = 0

    def place(self, task: TimerTask, now_ns: i64) -> Placed:
        """Make the task wait for its delay; move it if it waits here already."""
        bucket = task._bucket
        if bucket is not None:
            bucket.remove(task)
            self.size -= 1
        if task._due_ms == CANCELLED:
            return REFUSED
        self.added += 1
        # rounded up: the delay counts from now, not from the start of this millisecond
        task._due_ms = (now_ns + NS_PER_MS - 1) // NS_PER_MS + task.delay_ms
        # a delay of 0 is due now, even if the hand, which moves only with buckets, lags behind the clock
        if task.delay_ms > 0 and self.wheel.add(task):
            self.size += 1
            return WAITS
        self.expired += 1
        return DUE

    def discard(self, task: TimerTask, for_good: bool) -> bool:
        """Take the task out, and cancel it if `for_good`. True if it was waiting."""
        if for_good:
            task._due_ms = CANCELLED
        bucket = task._bucket
        if bucket is None:
            return False
        bucket.remove(task)
        self.size -= 1
        self.cancelled += 1
        return True

    def expire(self, now_ms: i64) -> list[TimerTask] | None:
        """Turn the wheel to `now_ms`, bucket by bucket. None if no bucket was due.

        Otherwise the due tasks, in the order of their buckets; other tasks of these buckets fall to a finer level.
        """
        queue = self.queue
        if queue.head_ms > now_ms:
            return None
        due: list[TimerTask] = []
        falling: list[TimerTask] = []
        wheel = self.wheel
        self._count_falls(-1)
        while queue.head_ms <= now_ms:
            bucket = queue.pop()
            wheel.advance(bucket.expiration_ms)
            bucket.empty_into(falling)
            for task in falling:
                if not wheel.add(task):
                    self.size -= 1
                    self.expired += 1
                    due.append(task)
            falling.clear()
        self._count_falls(1)
        return due

    def _count_falls(self, sign: i64) -> None:
        """Called before and after tasks fall: tasks that arrive in between came from above. So no task is counted."""
        wheel: TimingWheel | None = self.wheel
        while wheel is not None:
            wheel.fell_in += sign * wheel.arrived
            wheel = wheel.overflow

    def clear(self) -> None:
        """Drop every waiting task, so that nothing keeps a ring of tasks alive."""
        wheel: TimingWheel | None = self.wheel
        dropped: list[TimerTask] = []
        while wheel is not None:
            for bucket in wheel.buckets:
                bucket.empty_into(dropped)
            wheel = wheel.overflow
        self.queue.clear()
        self.size = 0

    def tasks(self, level: i64, index: i64, most: i64) -> list[TimerTask]:
        """The first tasks of a bucket; none if there is no such bucket. Level 1 is the finest."""
        wheel: TimingWheel | None = self.wheel
        while wheel is not None and level > 1:
            wheel = wheel.overflow
            level -= 1
        if wheel is None or index < 0 or index >= wheel.size:
            return []
        return wheel.buckets[index].first(most)

    def snapshot(self, name: str, now_ms: int) -> TimerSnapshot:
        levels: list[LevelSnapshot] = []
        wheel: TimingWheel | None = self.wheel
        while wheel is not None:
            levels.append(
                LevelSnapshot(
                    level=len(levels) + 1,
                    tick_ms=wheel.tick_ms,
                    span_ms=wheel.span_ms,
                    current_ms=wheel.current_ms,
                    hand=(wheel.current_ms // wheel.tick_ms) % wheel.size,
                    counts=tuple([int(bucket.count) for bucket in wheel.buckets]),
                    arrived=wheel.arrived,
                    fell_in=wheel.fell_in,
                )
            )
            wheel = wheel.overflow
        return TimerSnapshot(
            name=name,
            now_ms=now_ms,
            size=self.size,
            levels=tuple(levels),
            next_due_ms=None if self.queue.head_ms == NEVER else self.queue.head_ms,
            queued_buckets=len(self.queue),
            added=self.added,
            expired=self.expired,
            cancelled=self.cancelled,
            fell=sum([level.fell_in for level in levels]),
            failed=self.failed,
        )
