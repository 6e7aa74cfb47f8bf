"""From counts to rates, from lateness to percentiles."""

from __future__ import annotations

import random

import pytest

from ixion.cli.wheel.lateness import SLOTS, Lateness, percentile_ms
from ixion.cli.wheel.load import LONGEST_MS, SHORTEST_MS, log_uniform_ms
from ixion.cli.wheel.reading import Sample, read
from ixion.timer import LevelSnapshot, TimerSnapshot


def sample(at_seconds: float, *, added: int, arrived: tuple[int, ...], fell_in: tuple[int, ...], late: int) -> Sample:
    levels = tuple(
        LevelSnapshot(
            level=level, tick_ms=1, span_ms=20, current_ms=0, hand=0, counts=(0,) * 20, arrived=came, fell_in=fell
        )
        for level, (came, fell) in enumerate(zip(arrived, fell_in, strict=True), 1)
    )
    timer = TimerSnapshot(
        name="t", now_ms=0, size=0, levels=levels, next_due_ms=None, queued_buckets=0,
        added=added, expired=late, cancelled=added // 10, fell=sum(fell_in), failed=0,
    )  # fmt: skip
    return Sample(
        at_seconds=at_seconds,
        timer=timer,
        lateness=(0,) * 10 + (late,) + (0,) * (SLOTS - 11),
        cpu_seconds=at_seconds / 4,
        memory_bytes=None,
    )


def test_rates_are_differences_over_time() -> None:
    older = sample(1.0, added=100, arrived=(80, 60), fell_in=(40, 0), late=50)
    newer = sample(3.0, added=300, arrived=(240, 160, 10), fell_in=(100, 10, 0), late=90)
    reading = read(older, newer)
    assert (reading.added, reading.cancelled, reading.fell, reading.ran) == (100, 10, 35, 20)
    assert [level.arrived for level in reading.levels] == [80, 50, 5]
    assert [level.fell_in for level in reading.levels] == [30, 5, 0]
    assert reading.cpu_percent == pytest.approx(25)
    assert reading.timer is newer.timer


def test_rates_survive_two_samples_at_one_moment() -> None:
    same = sample(1.0, added=100, arrived=(100,), fell_in=(0,), late=50)
    assert read(same, same).added == 0


def test_a_percentile_is_the_upper_edge_of_its_slot() -> None:
    lateness = Lateness()
    for ms in range(1, 101):
        lateness.record(ms * 1_000_000)
    counts = lateness.counts()
    for fraction, exact in ((0.5, 50.0), (0.99, 99.0), (1.0, 100.0)):
        assert exact <= percentile_ms(counts, fraction) <= exact * 1.05


@pytest.mark.parametrize(("late_ns", "slot"), [(-5, 0), (0, 0), (1000, 0), (1001, 1), (10**15, SLOTS - 1)])
def test_every_lateness_has_a_slot(late_ns: int, slot: int) -> None:
    lateness = Lateness()
    lateness.record(late_ns)
    assert lateness.counts()[slot] == 1


def test_nothing_ran_means_no_lateness() -> None:
    assert percentile_ms(Lateness().counts(), 0.99) == 0.0


def test_delays_are_spread_over_all_magnitudes() -> None:
    chance = random.Random(1)
    delays = [log_uniform_ms(chance) for _ in range(2000)]
    assert min(delays) >= SHORTEST_MS
    assert max(delays) <= LONGEST_MS
    for magnitude in (10, 100, 1_000, 10_000):
        assert sum(magnitude <= delay < 10 * magnitude for delay in delays) > 200
