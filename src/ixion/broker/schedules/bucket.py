"""Records that are due in the same day, hour or second, twelve bytes each.

A record is its offset and its due time, counted from the start of the bucket. Both are in packed columns, sorted by
offset, in chunks of at most `CHUNK`. Most records come in the order of their offsets and are appended; one whose
transaction was open for a while is inserted between others. A record that leaves is found by bisection.

A bucket of a later hour or day keeps its full chunks on pages (`pages`), and only its last chunk in memory.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from ixion.broker.schedules.pages import NO_PAGE, RECORDS, Pages

CHUNK: Final = RECORDS


class Chunk:
    """Columns in memory, or the number of their page."""

    __slots__ = ("count", "last", "offsets", "page", "times")

    def __init__(self, offsets: array[int], times: array[int]) -> None:
        self.offsets: array[int] | None = offsets
        self.times: array[int] | None = times
        self.count = len(offsets)
        self.last = offsets[-1]
        self.page = NO_PAGE


class Bucket:
    __slots__ = ("_chunks", "_firsts", "_pages", "count")

    def __init__(self, pages: Pages | None = None) -> None:
        self.count = 0
        self._firsts: list[int] = []  # the first offset of each chunk
        self._chunks: list[Chunk] = []
        self._pages = pages

    def add(self, offset: int, time_ms: int) -> None:
        self.count += 1
        if not self._firsts:
            self._firsts.append(offset)
            self._chunks.append(Chunk(array("q", (offset,)), array("I", (time_ms,))))
            return
        slot = len(self._firsts) - 1
        if offset <= self._chunks[slot].last:
            slot = max(bisect_right(self._firsts, offset) - 1, 0)
        chunk = self._chunks[slot]
        if offset > chunk.last and chunk.count >= CHUNK:
            self._put_away(chunk)
            self._insert(slot + 1, array("q", (offset,)), array("I", (time_ms,)))
            return
        offsets, times = self._columns(chunk)
        place = len(offsets) if offset > offsets[-1] else bisect_left(offsets, offset)
        if len(offsets) < CHUNK:
            offsets.insert(place, offset)
            times.insert(place, time_ms)
            self._changed(slot, chunk)
        else:
            half = CHUNK // 2
            self._insert(slot + 1, offsets[half:], times[half:])
            del offsets[half:], times[half:]
            self._changed(slot, chunk)
            self.count -= 1
            self.add(offset, time_ms)

    def _insert(self, slot: int, offsets: array[int], times: array[int]) -> None:
        self._firsts.insert(slot, offsets[0])
        self._chunks.insert(slot, Chunk(offsets, times))

    def _columns(self, chunk: Chunk) -> tuple[array[int], array[int]]:
        """The columns of a chunk, in memory, where they may be changed."""
        offsets, times = chunk.offsets, chunk.times
        if offsets is None or times is None:
            assert self._pages is not None
            offsets, times = self._pages.read(chunk.page, chunk.count)
            self._pages.free(chunk.page)
            chunk.page = NO_PAGE
            chunk.offsets, chunk.times = offsets, times
        return offsets, times

    def _changed(self, slot: int, chunk: Chunk) -> None:
        offsets = chunk.offsets
        assert offsets is not None
        chunk.count = len(offsets)
        chunk.last = offsets[-1]
        self._firsts[slot] = offsets[0]
        if slot < len(self._chunks) - 1:
            self._put_away(chunk)

    def _put_away(self, chunk: Chunk) -> None:
        """Move the chunk to a page, if there are pages."""
        offsets, times = chunk.offsets, chunk.times
        if self._pages is not None and offsets is not None and times is not None:
            page = self._pages.write(offsets, times)
            if page != NO_PAGE:
                chunk.page = page
                chunk.offsets = chunk.times = None

    def remove(self, offset: int) -> bool:
        slot = bisect_right(self._firsts, offset) - 1
        if slot < 0 or offset > self._chunks[slot].last:
            return False
        chunk = self._chunks[slot]
        offsets, times = self._columns(chunk)
        place = bisect_left(offsets, offset)
        if offsets[place] != offset:
            self._changed(slot, chunk)
            return False
        self.count -= 1
        del offsets[place], times[place]
        if offsets:
            self._changed(slot, chunk)
        else:
            del self._firsts[slot], self._chunks[slot]
        return True

    def take_some(self, most: int) -> list[tuple[int, int]]:
        """Remove the first records, at most `most`, of one chunk; returns (offset, time) of each."""
        chunk = self._chunks[0]
        offsets, times = self._columns(chunk)
        taken = list(zip(offsets[:most], times[:most], strict=True))
        self.count -= len(taken)
        del offsets[:most], times[:most]
        if offsets:  # keep the rest in memory: it is taken next
            chunk.count = len(offsets)
            self._firsts[0] = offsets[0]
        else:
            del self._firsts[0], self._chunks[0]
        return taken

    @property
    def first_offset(self) -> int:
        return self._firsts[0]

    @property
    def chunks(self) -> int:
        return len(self._chunks)

    def look(self, slot: int) -> tuple[array[int], array[int]]:
        """Offsets and times of a chunk, to be read at once: one on a page stays there."""
        chunk = self._chunks[slot]
        offsets, times = chunk.offsets, chunk.times
        if offsets is None or times is None:
            assert self._pages is not None
            return self._pages.read(chunk.page, chunk.count)
        return offsets, times

    def stored(self) -> Iterator[tuple[int, int, bytes]]:
        """For each chunk: the number of records, and its page or its columns."""
        for chunk in self._chunks:
            offsets, times = chunk.offsets, chunk.times
            if offsets is None or times is None:
                yield chunk.count, chunk.page, b""
            else:
                yield chunk.count, NO_PAGE, offsets.tobytes() + times.tobytes()

    def restore(self, offsets: array[int], times: array[int]) -> None:
        """Add a chunk from `stored`, in that order."""
        self.count += len(offsets)
        if self._chunks:
            self._put_away(self._chunks[-1])
        self._insert(len(self._chunks), offsets, times)
