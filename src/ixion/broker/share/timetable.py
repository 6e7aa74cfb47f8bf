"""What becomes due when in one share partition: ends of locks, and due times of deferred records. One task of the wheel
stands for all of them, at `next_ms`.

An entry is a range of offsets in eight bytes, in a bucket named by a time. The farther the time, the wider the bucket:
of 1 ms up to 64 ms ahead, then of 2 ms up to 128 ms ahead, and so on. When the time of a bucket comes, its entries that
are not due yet go into narrower ones. So a lock of 30 s is moved nine times at most, and nothing is late by rounding:

    now 0, due 30,000     bucket 29,696, 512 ms wide
    now 29,696            304 ms ahead: bucket 30,000, 8 ms wide
    now 30,000            due

An entry does not say what is due, only where to look: the runs know. Of these only what falls into the time of the
bucket is added again, because the rest has entries of its own. An entry whose records have been acknowledged is
skipped when its bucket comes. If too many such entries gather, the owner makes the timetable anew (`is_stale`).
"""

from __future__ import annotations

from array import array
from heapq import heappop, heappush
from sys import getsizeof
from typing import Final

LENGTH_BITS: Final = 24  # an entry is (first offset - base) << 24 | (length - 1)
LONGEST: Final = 1 << LENGTH_BITS
FARTHEST: Final = 1 << (63 - LENGTH_BITS)  # offsets beyond the base
FINE_BITS: Final = 6  # 64 buckets of 1 ms
SHIFT_BITS: Final = 6  # a bucket is named by its time and its width: time << 6 | bits of the width


class Timetable:
    __slots__ = ("_base", "_buckets", "_names", "entries")

    def __init__(self, base: int) -> None:
        self._base = base  # no offset is below it
        self._buckets: dict[int, array[int]] = {}
        self._names: list[int] = []  # a heap
        self.entries = 0

    @property
    def next_ms(self) -> int:
        """When to look again; -1: never."""
        return self._names[0] >> SHIFT_BITS if self._names else -1

    def holds(self, offset: int) -> bool:
        """Whether the offset is near enough to the base."""
        return offset - self._base < FARTHEST

    def is_stale(self, runs: int) -> bool:
        """Whether most entries must be of records that are gone, if the owner has so many runs."""
        return self.entries > 4 * runs + 1024

    @property
    def size_in_bytes(self) -> int:
        return getsizeof(self._buckets) + getsizeof(self._names) + sum(map(getsizeof, self._buckets.values()))

    def add(self, first: int, last: int, due_ms: int, now_ms: int) -> None:
        ahead = due_ms - now_ms
        shift = max(ahead.bit_length() - FINE_BITS, 0) if ahead > 0 else 0
        name = (due_ms >> shift) << shift << SHIFT_BITS | shift
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = array("q")
            heappush(self._names, name)
        while first <= last:
            upto = min(last, first + LONGEST - 1)
            bucket.append((first - self._base) << LENGTH_BITS | (upto - first))
            self.entries += 1
            first = upto + 1

    def take(self, now_ms: int, most: int) -> list[tuple[int, int, int]]:
        """Ranges of which something may be due by now, each with the end of its bucket's time; about `most` of them,
        the rest stays. The owner adds what is due after now and before that end again."""
        taken: list[tuple[int, int, int]] = []
        while self._names and self._names[0] >> SHIFT_BITS <= now_ms and len(taken) < most:
            name = self._names[0]
            bucket = self._buckets[name]
            until_ms = (name >> SHIFT_BITS) + (1 << (name & (1 << SHIFT_BITS) - 1))
            now = bucket[: most - len(taken)]
            if len(now) < len(bucket):
                del bucket[: len(now)]
            else:
                heappop(self._names)
                del self._buckets[name]
            self.entries -= len(now)
            for entry in now:
                first = self._base + (entry >> LENGTH_BITS)
                taken.append((first, first + (entry & LONGEST - 1), until_ms))
        return taken
