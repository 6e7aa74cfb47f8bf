"""The values that `ixion wheel` shows: two samples of counts make a reading with rates."""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import dataclass

from ixion.cli.wheel.lateness import percentile_ms
from ixion.cli.wheel.load import WheelLoad
from ixion.timer import LevelSnapshot, TimerSnapshot

WINDOW_SECONDS = 3.0  # what "a second" is averaged over: long enough to be calm, short enough to be live


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    at_seconds: float
    timer: TimerSnapshot
    lateness: tuple[int, ...]  # see wheel_lateness
    cpu_seconds: float
    memory_bytes: int | None  # None where the system does not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelReading:
    state: LevelSnapshot
    arrived: float  # tasks per second, from outside and from above
    fell_in: float  # of these, from above


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    elapsed_seconds: float
    timer: TimerSnapshot
    levels: tuple[LevelReading, ...]  # the finest first
    added: float  # this and the next three per second
    ran: float
    cancelled: float
    fell: float
    late_p50_ms: float
    late_p99_ms: float
    late_max_ms: float
    cpu_percent: float  # of one core
    memory_bytes: int | None


def memory_bytes() -> int | None:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def read(older: Sample, newer: Sample) -> Reading:
    """Rates between two samples; the rest as the newer one has it."""
    seconds = max(newer.at_seconds - older.at_seconds, 1e-9)
    before, now = older.timer, newer.timer
    late = [new - old for old, new in zip(older.lateness, newer.lateness, strict=True)]

    def rate(old: float, new: float) -> float:
        return max(0.0, (new - old) / seconds)

    earlier = {state.level: state for state in before.levels}
    levels = []
    for state in now.levels:
        was = earlier.get(state.level)
        arrived = rate(was.arrived if was else 0, state.arrived)
        fell_in = rate(was.fell_in if was else 0, state.fell_in)
        levels.append(LevelReading(state=state, arrived=arrived, fell_in=fell_in))
    return Reading(
        elapsed_seconds=newer.at_seconds,
        timer=now,
        levels=tuple(levels),
        added=rate(before.added, now.added),
        ran=sum(late) / seconds,
        cancelled=rate(before.cancelled, now.cancelled),
        fell=rate(before.fell, now.fell),
        late_p50_ms=percentile_ms(late, 0.5),
        late_p99_ms=percentile_ms(late, 0.99),
        late_max_ms=percentile_ms(late, 1.0),
        cpu_percent=100 * rate(older.cpu_seconds, newer.cpu_seconds),
        memory_bytes=newer.memory_bytes,
    )


class Observer:
    """Samples a load. Keeps the first sample, for the summary, and the last few seconds of them, for the view."""

    def __init__(self, load: WheelLoad) -> None:
        self._load = load
        self._started = time.monotonic()
        self._cpu_started = time.process_time()
        self._first = self._sample(load.timer.snapshot())
        self._recent = deque([self._first])

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._started

    def reading(self) -> Reading:
        """The present, with rates over the last few seconds."""
        sample = self._sample(self._load.timer.snapshot())
        self._recent.append(sample)
        while sample.at_seconds - self._recent[1].at_seconds >= WINDOW_SECONDS:
            self._recent.popleft()
        return read(self._recent[0], sample)

    def summary(self) -> Reading:
        """Stop the load; the whole run, with rates over all of it."""
        return read(self._first, self._sample(self._load.stop()))

    def _sample(self, snapshot: TimerSnapshot) -> Sample:
        return Sample(
            at_seconds=self.elapsed_seconds,
            timer=snapshot,
            lateness=self._load.lateness.counts(),
            cpu_seconds=time.process_time() - self._cpu_started,
            memory_bytes=memory_bytes(),
        )
