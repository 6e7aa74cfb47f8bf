"""Records that wait for the same hour, or the same second, twelve bytes each.

A record is known by its offset and by its due time, counted from the start of the bucket. Both stand in packed columns,
sorted by offset, in chunks of at most `CHUNK`. Most records come in the order of their offsets and are appended at the
end; one whose transaction was open for a while is put between others. A record that leaves is found by bisection.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

CHUNK: Final = 1024


class Bucket:
    __slots__ = ("_firsts", "_offsets", "_times", "count")

    def __init__(self) -> None:
        self.count = 0
        self._firsts: list[int] = []  # the first offset of each chunk
        self._offsets: list[array[int]] = []
        self._times: list[array[int]] = []

    def add(self, offset: int, time_ms: int) -> None:
        self.count += 1
        if not self._firsts:
            self._firsts.append(offset)
            self._offsets.append(array("q", (offset,)))
            self._times.append(array("I", (time_ms,)))
            return
        slot = len(self._firsts) - 1
        if offset <= self._offsets[slot][-1]:
            slot = max(bisect_right(self._firsts, offset) - 1, 0)
        offsets, times = self._offsets[slot], self._times[slot]
        place = len(offsets) if offset > offsets[-1] else bisect_left(offsets, offset)
        if len(offsets) < CHUNK:
            offsets.insert(place, offset)
            times.insert(place, time_ms)
            self._firsts[slot] = offsets[0]
        elif place == len(offsets):
            self._insert(slot + 1, array("q", (offset,)), array("I", (time_ms,)))
        else:
            half = CHUNK // 2
            self._insert(slot + 1, offsets[half:], times[half:])
            del offsets[half:], times[half:]
            self.count -= 1
            self.add(offset, time_ms)

    def _insert(self, slot: int, offsets: array[int], times: array[int]) -> None:
        self._firsts.insert(slot, offsets[0])
        self._offsets.insert(slot, offsets)
        self._times.insert(slot, times)

    def remove(self, offset: int) -> bool:
        slot = bisect_right(self._firsts, offset) - 1
        if slot < 0:
            return False
        offsets = self._offsets[slot]
        place = bisect_left(offsets, offset)
        if place == len(offsets) or offsets[place] != offset:
            return False
        del offsets[place], self._times[slot][place]
        if offsets:
            self._firsts[slot] = offsets[0]
        else:
            del self._firsts[slot], self._offsets[slot], self._times[slot]
        self.count -= 1
        return True

    def take_chunk(self) -> list[tuple[int, int]]:
        """(offset, time) of the first chunk, which leaves the bucket."""
        del self._firsts[0]
        pairs = list(zip(self._offsets.pop(0), self._times.pop(0), strict=True))
        self.count -= len(pairs)
        return pairs

    @property
    def first_offset(self) -> int:
        return self._firsts[0]

    def chunks(self) -> Iterator[list[tuple[int, int]]]:
        """A copy of each chunk. The bucket may change between two of them; what is added meanwhile may be missing."""
        at = -1
        while True:
            slot = bisect_right(self._firsts, at)
            if slot > 0 and self._offsets[slot - 1][-1] > at:
                slot -= 1
            if slot == len(self._firsts):
                return
            pairs = list(zip(self._offsets[slot], self._times[slot], strict=True))
            yield [pair for pair in pairs if pair[0] > at]
            at = pairs[-1][0]
