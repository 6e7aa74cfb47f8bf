"""The load under `ixion wheel`: a live timer, and a thread that throws tasks into it.

Delays are log-uniform, so that each level of the wheel gets about as many tasks as the next: as many between 5 and
50 ms as between 5 and 50 s. A share of the tasks is cancelled at a random moment of its wait, as most timeouts are in
a broker. Three threads: one throws and cancels, one advances the clock, and the timer's own worker runs what expired.
"""

from __future__ import annotations

import heapq
import math
import random
import threading
import time

from ixion.cli.wheel.lateness import Lateness
from ixion.timer import SystemTimer, TimerSnapshot, TimerTask

SHORTEST_MS = 5
LONGEST_MS = 5 * 60 * 1000

THROW_SECONDS = 0.005  # how often the thrower wakes; at 500 tasks a second it throws two or three each time
ADVANCE_MS = 50  # how soon the clock's thread notices that it is to stop
MAX_DEBT_SECONDS = 0.25  # after a pause (a laptop's lid, Ctrl-Z) no more than this is made up for


class ThrownTask(TimerTask):
    """Notes how late it was run."""

    __slots__ = ("_lateness", "due_ns")

    def __init__(self, delay_ms: int, now_ns: int, lateness: Lateness) -> None:
        super().__init__(delay_ms)
        self.due_ns = now_ns + delay_ms * 1_000_000
        self._lateness = lateness

    def run(self) -> None:
        self._lateness.record(time.monotonic_ns() - self.due_ns)


def log_uniform_ms(chance: random.Random) -> int:
    return round(math.exp(chance.uniform(math.log(SHORTEST_MS), math.log(LONGEST_MS))))


class WheelLoad:
    """Use it in a `with` block: the threads run inside it, and none is left behind it."""

    def __init__(self, rate: int, cancel: float, seed: int | None = None) -> None:
        self.timer = SystemTimer("wheel")
        self.lateness = Lateness()
        self._rate = rate
        self._cancel = cancel
        self._chance = random.Random(seed)
        self._to_cancel: list[tuple[int, int, ThrownTask]] = []  # a heap of (when, serial number, which)
        self._thrown = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._throw, name="wheel-throw", daemon=True),
            threading.Thread(target=self._advance, name="wheel-advance", daemon=True),
        ]

    def __enter__(self) -> WheelLoad:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> TimerSnapshot:
        """Stop throwing, then the clock, then the worker, when it has run what it was given. Returns the last state."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        snapshot = self.timer.snapshot()
        self.timer.shutdown()
        return snapshot

    def _advance(self) -> None:
        while not self._stop.is_set():
            self.timer.advance_clock(ADVANCE_MS)

    def _throw(self) -> None:
        last_ns = time.monotonic_ns()
        owed = 0.0
        while not self._stop.wait(THROW_SECONDS):
            now_ns = time.monotonic_ns()
            owed += min((now_ns - last_ns) / 1e9, MAX_DEBT_SECONDS) * self._rate
            last_ns = now_ns
            while owed >= 1:
                owed -= 1
                self._throw_one()
            now_ns = time.monotonic_ns()
            while self._to_cancel and self._to_cancel[0][0] <= now_ns:
                heapq.heappop(self._to_cancel)[2].cancel()

    def _throw_one(self) -> None:
        delay_ms = log_uniform_ms(self._chance)
        now_ns = time.monotonic_ns()
        task = ThrownTask(delay_ms, now_ns, self.lateness)
        self.timer.add(task)
        self._thrown += 1
        if self._chance.random() < self._cancel:
            latest_ms = delay_ms - THROW_SECONDS * 1000  # cancelled up to one turn of `_throw` later, yet in time
            when_ns = now_ns + int(self._chance.random() * latest_ms * 1_000_000)
            heapq.heappush(self._to_cancel, (when_ns, self._thrown, task))
