"""When delayed records are due: how many in each minute and hour, and which ones come first.

They wait in buckets of a second, an hour or a day (`schedules.pending`). A bucket that lies in one bar of the histogram
is counted whole. One of a day lies in several, so the times in it are read: at most `LOOKED_INTO` chunks of a thousand,
and the rest of its records are taken to be spread as these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Final, NamedTuple

from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.schedules.bucket import Bucket
    from ixion.broker.schedules.pending import Pending

SECOND_MS: Final = 1_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
SECONDS: Final = 60  # of the first histogram
HOURS: Final = 24  # of the second
LOOKED_INTO: Final = 64  # chunks of a bucket
MOST_SORTED: Final = 20_000  # records of one millisecond after the other that are looked at


class Counts(NamedTuple):
    seconds: list[int]  # due in each of the next 60 seconds; what is overdue is in the first
    hours: list[int]  # in each of the next 24 hours
    days: dict[int, int]  # in each later day, counted from now


def counts(pendings: Sequence[Pending], now_ms: int) -> Steps[Counts]:
    made = Counts([0] * SECONDS, [0] * HOURS, {})
    for pending in pendings:
        for level in pending.levels:
            for number, bucket in list(level.buckets.items()):
                start_ms = number * level.width
                if level.width <= HOUR_MS:
                    add(made, start_ms - now_ms, bucket.count, exact=level.width <= SECOND_MS)
                else:
                    for ahead_ms, count in (yield from spread(bucket, start_ms, now_ms)):
                        add(made, ahead_ms, count, exact=False)
                yield
        for due_ms, _ in pending.at_hand()[:MOST_SORTED]:
            add(made, due_ms - now_ms, 1, exact=True)
        yield
    return made


def add(made: Counts, ahead_ms: int, count: int, *, exact: bool) -> None:
    """`exact`: the time is known to the second, not to the hour."""
    ahead_ms = max(ahead_ms, 0)
    if exact and ahead_ms < SECONDS * SECOND_MS:
        made.seconds[ahead_ms // SECOND_MS] += count
    if ahead_ms < DAY_MS:
        made.hours[ahead_ms // HOUR_MS] += count
    else:
        day = ahead_ms // DAY_MS
        made.days[day] = made.days.get(day, 0) + count


def spread(bucket: Bucket, start_ms: int, now_ms: int) -> Steps[list[tuple[int, int]]]:
    """How far ahead the records of a bucket of a day are due, by the hour, and how many."""
    if not bucket.count:
        return []
    if start_ms - now_ms >= 2 * DAY_MS:
        return [(start_ms - now_ms, bucket.count)]
    seen: dict[int, int] = {}
    for _, times in chunks(bucket):
        for time_ms in times:
            hour = (start_ms + time_ms - now_ms) // HOUR_MS
            seen[hour] = seen.get(hour, 0) + 1
        yield
    looked_at = sum(seen.values())
    if not looked_at:  # all have left meanwhile
        return []
    parts = {hour: bucket.count * count // looked_at for hour, count in seen.items()}
    parts[max(seen, key=lambda hour: seen[hour])] += bucket.count - sum(parts.values())
    return [(hour * HOUR_MS, count) for hour, count in parts.items()]


def chunks(bucket: Bucket) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Offsets and times of its first chunks. It may change between two of them."""
    for slot in range(LOOKED_INTO):
        if slot >= bucket.chunks:
            return
        yield bucket.look(slot)


class Coming(NamedTuple):
    due_ms: int
    topic: str
    partition: int
    offset: int


def coming(pendings: Sequence[tuple[str, int, Pending]], most: int) -> Steps[list[Coming]]:
    """The records that are due next, the first one first."""
    found: list[Coming] = []
    for topic, number, pending in pendings:
        of_one: list[Coming] = [
            Coming(due_ms, topic, number, offset) for due_ms, offset in nsmallest(most, pending.at_hand())
        ]
        # A finer level ends before a coarser one begins.
        for level in reversed(pending.levels):
            for at in sorted(level.buckets):
                bucket = level.buckets.get(at)
                start_ms = at * level.width
                if bucket is None or len(of_one) >= most or (len(found) >= most and start_ms > found[-1].due_ms):
                    break
                some: list[Coming] = []
                for offsets, times in chunks(bucket):
                    pairs = nsmallest(most, zip(times, offsets, strict=True))
                    some += [Coming(start_ms + time_ms, topic, number, offset) for time_ms, offset in pairs]
                    yield
                of_one += nsmallest(most, some)
        found = sorted([*found, *of_one])[:most]
        yield
    return found
