"""The waiting records of one partition by due time: a wheel of packed buckets.

    days      due on a later day                  one bucket for each day
    hours     due today, in a later hour          one bucket for each hour
    seconds   due in the next hour                one bucket for each second
    times     due in the next second              a list of offsets for each millisecond

As on a timing wheel, a far record is in a coarse bucket and moves to a finer one as its time comes near; a step moves
`STEP` records. Records of one millisecond leave in the order of their offsets. A record takes 12 bytes while it is more
than a second away (`bucket`). Records of a later hour are on the disk, except the last thousand of a bucket (`pages`).

    now 10:59:59.950, due 11:00:00.120        its hour has been spread over seconds ahead of time (AHEAD_HOUR_MS)
    now 10:59:59.990                          its second is spread over milliseconds (AHEAD_SECOND_MS)
    now 11:00:00.120                          `pop` returns it
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush
from typing import Final

from ixion.broker.schedules.bucket import Bucket
from ixion.broker.schedules.pages import Pages

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
SECOND_MS: Final = 1_000
AHEAD_DAY_MS: Final = 600_000
AHEAD_HOUR_MS: Final = 60_000
AHEAD_SECOND_MS: Final = 100
STEP: Final = 128  # records moved in a step, some 100 µs
ENOUGH: Final = 10_000  # records in `times`: while there are so many, no further bucket is spread

Due = tuple[int, int]  # due time, offset


class Level:
    """Buckets of one width, by number; the heap has the number of each."""

    __slots__ = ("ahead_ms", "buckets", "heap", "pages", "until_ms", "width")

    def __init__(self, width: int, ahead_ms: int, pages: Pages | None) -> None:
        self.width: Final = width
        self.ahead_ms: Final = ahead_ms
        self.pages: Final = pages
        self.buckets: dict[int, Bucket] = {}
        self.heap: list[int] = []
        self.until_ms = 0  # a record that is due before this goes to a finer level

    def add(self, due_ms: int, offset: int) -> None:
        number = due_ms // self.width
        self.bucket(number).add(offset, due_ms - number * self.width)

    def bucket(self, number: int) -> Bucket:
        """The bucket of this number, created if it is missing."""
        bucket = self.buckets.get(number)
        if bucket is None:
            bucket = self.buckets[number] = Bucket(self.pages)
            heappush(self.heap, number)
        return bucket

    def remove(self, due_ms: int, offset: int) -> bool:
        bucket = self.buckets.get(due_ms // self.width)
        return bucket is not None and bucket.remove(offset)

    def first(self) -> int:
        """The number of the first bucket that is not empty; -1 if there is none."""
        while self.heap:
            number = self.heap[0]
            if self.buckets[number].count:
                return number
            del self.buckets[number]
            heappop(self.heap)
        return -1

    def starts_ms(self) -> int:
        """When the first bucket must be spread; -1 if there is none."""
        number = self.first()
        return -1 if number < 0 else max(number * self.width - self.ahead_ms, 0)

    def is_past(self, now_ms: int) -> bool:
        """Whether all records of the first bucket are due."""
        number = self.first()
        return number >= 0 and (number + 1) * self.width <= now_ms

    def take_some(self) -> list[Due]:
        number = self.heap[0]
        start = number * self.width
        return [(start + time_ms, offset) for offset, time_ms in self.buckets[number].take_some(STEP)]


class Pending:
    def __init__(self, pages: Pages | None = None) -> None:
        """`pages` are for records of a later hour."""
        self.count = 0
        self.pages: Final = pages
        self.levels: Final = (
            Level(DAY_MS, AHEAD_DAY_MS, pages),
            Level(HOUR_MS, AHEAD_HOUR_MS, pages),
            Level(SECOND_MS, AHEAD_SECOND_MS, None),
        )
        self._times: dict[int, list[int]] = {}
        self._heap: list[int] = []  # of the times
        self._at_hand = 0

    def add(self, due_ms: int, offset: int) -> None:
        self.count += 1
        self._place(due_ms, offset)

    def _place(self, due_ms: int, offset: int) -> None:
        for level in self.levels:
            if due_ms >= level.until_ms:
                level.add(due_ms, offset)
                return
        self._at_hand += 1
        offsets = self._times.get(due_ms)
        if offsets is None:
            self._times[due_ms] = [offset]
            heappush(self._heap, due_ms)
        elif offset > offsets[-1]:
            offsets.append(offset)
        else:
            insort(offsets, offset)

    def remove(self, due_ms: int, offset: int) -> bool:
        """False if the record does not wait here."""
        removed = self._remove_at_hand(due_ms, offset) or any(level.remove(due_ms, offset) for level in self.levels)
        self.count -= removed
        return removed

    def _remove_at_hand(self, due_ms: int, offset: int) -> bool:
        offsets = self._times.get(due_ms)
        if offsets is None:
            return False
        place = bisect_left(offsets, offset)
        if place == len(offsets) or offsets[place] != offset:
            return False
        del offsets[place]
        self._at_hand -= 1
        if not offsets:
            del self._times[due_ms]  # the heap keeps the time; see `_first_time`
        return True

    def spread(self, now_ms: int) -> bool:
        """Move some near records to a finer bucket. False if there is nothing to move now."""
        if self._at_hand >= ENOUGH:
            return False
        # Spread the earliest bucket first, even if all of them are overdue.
        near = [level for level in self.levels if 0 <= level.starts_ms() <= now_ms]
        if not near:
            return False
        level = min(near, key=lambda each: each.first() * each.width)
        level.until_ms = max(level.until_ms, (level.first() + 1) * level.width)
        for due_ms, offset in level.take_some():
            self._place(due_ms, offset)
        return True

    def _first_time(self) -> int:
        while self._heap and self._heap[0] not in self._times:
            heappop(self._heap)
        return self._heap[0] if self._heap else -1

    def pop(self, now_ms: int, most: int) -> list[Due]:
        """Up to `most` records that are due, in the order of due time and offset. `spread` comes first."""
        found: list[Due] = []
        while len(found) < most:
            due_ms = self._first_time()
            if due_ms < 0 or due_ms > now_ms:
                break
            offsets = self._times[due_ms]
            taken = offsets[: most - len(found)]
            found += [(due_ms, offset) for offset in taken]
            if len(taken) == len(offsets):
                del self._times[due_ms]
            else:
                del offsets[: len(taken)]
        self._at_hand -= len(found)
        self.count -= len(found)
        return found

    def wake_ms(self) -> int:
        """When the next record is due or the next bucket must be spread; -1 if nothing waits."""
        first = self._first_time()
        if self._at_hand >= ENOUGH:
            return first
        times = [first, *(level.starts_ms() for level in self.levels)]
        return min((time for time in times if time >= 0), default=-1)

    def overdue_ms(self, now_ms: int) -> int:
        """How long the first record is overdue; 0 if none is. Exact for records in `times`, else by the bucket."""
        starts = [level.first() * level.width for level in self.levels if level.is_past(now_ms)]
        first = self._first_time()
        return max(0, now_ms - min([*starts, first] if first >= 0 else starts, default=now_ms))

    def first_offset(self) -> int:
        """The smallest offset that waits; -1 if nothing does."""
        firsts = [offsets[0] for offsets in self._times.values()]
        for level in self.levels:
            firsts += [bucket.first_offset for bucket in level.buckets.values() if bucket.count]
        return min(firsts, default=-1)

    @property
    def near(self) -> int:
        """How many records are in memory, because they are due in the current hour of the clock, or very soon."""
        return self._at_hand + sum(bucket.count for bucket in self.levels[-1].buckets.values())

    def at_hand(self) -> list[Due]:
        """The records that are in no bucket any more."""
        return [(due_ms, offset) for due_ms, offsets in self._times.items() for offset in offsets]
