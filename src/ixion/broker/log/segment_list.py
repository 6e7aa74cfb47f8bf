"""The segments of a log, in the order of their base offsets."""

# This module is compiled: see setup.py.

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ixion.broker.log.segment import Segment


class SegmentList:
    __slots__ = ("_bases", "_segments")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(list(self._segments))

    def __contains__(self, segment: object) -> bool:
        return segment in self._segments

    @property
    def active(self) -> Segment:
        return self._segments[-1]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def total_size(self) -> int:
        total = 0
        for segment in self._segments:
            total += segment.size
        return total

    def add(self, segment: Segment) -> None:
        slot = bisect_right(self._bases, segment.base_offset)
        self._bases.insert(slot, segment.base_offset)
        self._segments.insert(slot, segment)

    def remove(self, segment: Segment) -> None:
        slot = self._segments.index(segment)
        del self._segments[slot]
        del self._bases[slot]

    def slot_of(self, offset: int) -> int:
        """The slot of the last segment that begins at or before `offset`; -1 if all begin later."""
        if self._bases and offset >= self._bases[-1]:
            return len(self._bases) - 1
        return bisect_right(self._bases, offset) - 1

    def at(self, slot: int) -> Segment:
        return self._segments[slot]

    def from_offset(self, offset: int) -> list[Segment]:
        """Every segment that may contain `offset` or a later one."""
        return self._segments[max(self.slot_of(offset), 0) :]

    def end_of(self, slot: int, log_end: int) -> int:
        """The end offset of the segment in this slot: the base offset of the next one, or the end of the log."""
        return self._bases[slot + 1] if slot + 1 < len(self._bases) else log_end

    def replace(self, old: list[Segment], new: list[Segment]) -> None:
        """Replaces `old` by `new` in one step."""
        gone = {id(segment) for segment in old}
        kept = [segment for segment in self._segments if id(segment) not in gone]
        self._segments = sorted([*kept, *new], key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]
