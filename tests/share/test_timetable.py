from __future__ import annotations

import random

import pytest

from ixion.broker.share.timetable import LONGEST, Timetable


def drained(table: Timetable, dues: dict[int, int], step_ms: int) -> dict[int, int]:
    """When each offset was found to be due, by a clock that wakes at `next_ms`."""
    found: dict[int, int] = {}
    now = 0
    while table.next_ms >= 0:
        now = max(now, table.next_ms) + step_ms
        for first, last, until in table.take(now, 1000):
            for offset in range(first, last + 1):
                if dues[offset] <= now:
                    found[offset] = now
                elif dues[offset] < until:
                    table.add(offset, offset, dues[offset], now)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_early_late_or_forgotten(seed: int) -> None:
    drawn = random.Random(seed)
    table = Timetable(1_000)
    dues = {
        1_000 + at: drawn.choice((drawn.randrange(100), drawn.randrange(10**5), drawn.randrange(10**9)))
        for at in range(500)
    }
    for offset, due in dues.items():
        table.add(offset, offset, due, 0)
    found = drained(table, dues, 0)
    assert set(found) == set(dues)
    assert all(found[offset] == due for offset, due in dues.items())


def test_a_far_time_moves_few_times() -> None:
    table = Timetable(0)
    table.add(5, 5, 30_000, 0)
    looks = 0
    while True:
        now = table.next_ms
        looks += 1
        ((first, last, until),) = table.take(now, 10)
        assert (first, last) == (5, 5)
        if now == 30_000:
            break
        assert until > 30_000
        table.add(first, last, 30_000, now)
    assert looks <= 10


def test_the_rest_of_a_full_bucket_stays() -> None:
    table = Timetable(0)
    for at in range(10):
        table.add(at, at, 5, 0)
    assert len(table.take(5, 4)) == 4
    assert table.next_ms == 5
    assert len(table.take(5, 100)) == 6
    assert table.next_ms == -1
    assert table.entries == 0


def test_a_very_long_range_is_several_entries() -> None:
    table = Timetable(0)
    table.add(0, LONGEST, 5, 0)
    assert [each[:2] for each in table.take(5, 10)] == [(0, LONGEST - 1), (LONGEST, LONGEST)]
