"""Which delayed records are due when, at any time of the day."""

from __future__ import annotations

from random import Random

import pytest

from ixion.broker.schedules.pending import DAY_MS, HOUR_MS, Pending
from ixion.broker.web.console.api.due import LOOKED_INTO, Counts, coming, counts
from ixion.timer.turns import Steps, T

MIDNIGHT = 20_000 * DAY_MS


def all_of(steps: Steps[T]) -> T:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def pending_with(*due_ms: int, now_ms: int) -> Pending:
    pending = Pending()
    for offset, each in enumerate(due_ms):
        pending.add(each, offset)
    while pending.spread(now_ms):
        pass
    return pending


@pytest.mark.parametrize("hour", [0, 11, 22, 23])
def test_what_is_due_tomorrow_is_in_its_hour(hour: int) -> None:
    now = MIDNIGHT + hour * HOUR_MS + 35 * 60_000
    ahead = [90 * 60_000, 5 * HOUR_MS + 60_000, 23 * HOUR_MS, 25 * HOUR_MS, 26 * HOUR_MS, 71 * HOUR_MS]
    found = all_of(counts([pending_with(*(now + each for each in ahead), now_ms=now)], now))
    # Buckets of an hour begin with the hour of the clock, so a bar may be early by one.
    within_a_day = [hour for hour, count in enumerate(found.hours) for _ in range(count)]
    assert len(within_a_day) == 3
    assert all(at in (each // HOUR_MS, each // HOUR_MS - 1) for at, each in zip(within_a_day, ahead, strict=False))
    assert sum(found.days.values()) == 3
    assert sum(found.seconds) == 0


def test_the_next_minute_is_exact_and_what_is_overdue_is_due_now() -> None:
    now = MIDNIGHT + 12 * HOUR_MS + 30 * 60_000
    found = all_of(counts([pending_with(now - 5000, now + 50, now + 2500, now + 59_500, now_ms=now)], now))
    assert (found.seconds[0], sum(found.seconds), found.hours[0]) == (2, 4, 4)
    assert found.days == {}


def test_a_large_bucket_is_estimated_and_its_sum_is_right() -> None:
    now = MIDNIGHT + 23 * HOUR_MS
    random = Random(7)
    many = (LOOKED_INTO + 3) * 1024
    # The last chunks are not looked at: their records are spread as the others.
    due = [now + 2 * HOUR_MS + random.randrange(4 * HOUR_MS) for _ in range(many)]
    pending = Pending()
    for offset, each in enumerate(due):
        pending.add(each, offset)
    found: Counts = all_of(counts([pending], now))
    assert sum(found.hours) == many
    assert all(abs(count - many / 4) < many / 50 for count in found.hours[2:6])


def test_the_first_records_of_all_partitions_in_order() -> None:
    now = MIDNIGHT + 23 * HOUR_MS + 58 * 60_000
    random = Random(3)
    pendings = []
    due = []
    for number in range(5):
        times = [now + random.choice((10, 5_000, 600_000, 30 * HOUR_MS)) + random.randrange(9000) for _ in range(300)]
        due += [(each, "jobs", number, offset) for offset, each in enumerate(times)]
        pendings.append(("jobs", number, pending_with(*times, now_ms=now)))
    assert all_of(coming(pendings, 700)) == sorted(due)[:700]
    assert all_of(coming(pendings, 5)) == sorted(due)[:5]
    assert all_of(coming([], 5)) == []
