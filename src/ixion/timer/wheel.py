"""Hierarchical timing wheels: adding and cancelling cost the same however many tasks wait.

A wheel is a ring of buckets. Each bucket stands for one tick of time; a wheel of 20 buckets of 1 ms covers 20 ms from
its hand on. A task due later goes to the overflow wheel above, whose tick is this wheel's whole span: 20 ms, then
400 ms, then 8 s, and so on. Overflow wheels are made when the first task needs them.

    level   tick     span      holds tasks due in
    1       1 ms     20 ms     [1 ms, 20 ms)
    2       20 ms    400 ms    [20 ms, 400 ms)
    3       400 ms   8 s       [400 ms, 8 s)

Worked example: a task with a delay of 450 ms, added at time 0.

    t = 0     450 is beyond level 1 (20) and level 2 (400): level 3, in the bucket of [400, 800), due at 400
    t = 400   that bucket is due. The hands move to 400; 50 ms are left: level 2, bucket [440, 460), due at 440
    t = 440   due again; 10 ms are left: level 1, bucket [450, 451), due at 450
    t = 450   due at last; level 1 refuses a task that is already due, and a refused task is run

All levels share one delay queue of buckets, so the clock moves from one non-empty bucket to the next and skips empty
ticks. A bucket enters the queue when its expiration changes, which happens once per turn of the wheel.

Times are whole milliseconds of one monotonic clock. `current_ms`, the hand, is always a multiple of `tick_ms`; the
bucket it points at is the one being emptied. Not thread-safe: the owner of the wheel serialises access.
"""

from __future__ import annotations

from ixion._native import i64
from ixion.timer.bucket import Bucket
from ixion.timer.delay_queue import NEVER, DelayQueue
from ixion.timer.task import TimerTask


class TimingWheel:
    __slots__ = ("arrived", "buckets", "current_ms", "fell_in", "overflow", "queue", "size", "span_ms", "tick_ms")

    def __init__(self, tick_ms: i64, size: i64, start_ms: i64, queue: DelayQueue) -> None:
        self.tick_ms: i64 = tick_ms
        self.size: i64 = size
        # From level 15 on (wheels of 20), a span does not fit 64 bits: such a wheel accepts every task.
        self.span_ms: i64 = tick_ms * size if tick_ms <= NEVER // size else NEVER
        self.current_ms: i64 = start_ms - start_ms % tick_ms
        self.buckets: list[Bucket] = [Bucket() for _ in range(size)]
        self.queue: DelayQueue = queue
        self.overflow: TimingWheel | None = None
        self.arrived: i64 = 0  # tasks ever put into this wheel, from outside or from the wheel above
        self.fell_in: i64 = 0  # tasks that came from above

    def add(self, task: TimerTask) -> bool:
        """Put the task into its bucket, here or in a wheel above. False: it is already due."""
        due_ms: i64 = task._due_ms
        ahead_ms = due_ms - self.current_ms
        if ahead_ms < self.tick_ms:
            return False
        if ahead_ms < self.span_ms:
            tick_number = due_ms // self.tick_ms
            bucket = self.buckets[tick_number % self.size]
            bucket.add(task)
            self.arrived += 1
            if bucket.set_expiration(tick_number * self.tick_ms):
                self.queue.push(bucket)
            return True
        overflow = self.overflow
        if overflow is None:
            overflow = self.overflow = TimingWheel(self.span_ms, self.size, self.current_ms, self.queue)
        return overflow.add(task)

    def advance(self, to_ms: i64) -> None:
        """Move the hand, and the hands of the wheels above, to a time that the clock has reached."""
        if to_ms - self.current_ms >= self.tick_ms:
            self.current_ms = to_ms - to_ms % self.tick_ms
            overflow = self.overflow
            if overflow is not None:
                overflow.advance(self.current_ms)
