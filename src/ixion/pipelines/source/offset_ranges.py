"""Arithmetic of offsets: which parts of a range are left to read, and in which portions.

A range is [first, end), as (first, end).

    wanted 0 to 100, read before 40 to 60 and 90 to 120      left 0 to 40, 60 to 90
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Range = tuple[int, int]


@dataclass(frozen=True, slots=True, order=True)
class Portion:
    """Consecutive offsets of one partition."""

    topic: str
    partition: int
    first: int
    end: int


def left_of(wanted: Range, read: Iterable[Range]) -> Iterator[Range]:
    """The parts of WANTED that are in none of READ, in order."""
    first, end = wanted
    for start, stop in sorted(read):
        if start >= end:
            break
        if start > first:
            yield first, start
        first = max(first, stop)
    if first < end:
        yield first, end


def in_batches(portions: Iterable[Portion], most: int) -> list[list[Portion]]:
    """PORTIONS cut into batches of at most MOST offsets, and of one portion for each partition."""
    batches: list[list[Portion]] = []
    room = 0
    for portion in portions:
        first = portion.first
        while first < portion.end:
            if not room or any((one.topic, one.partition) == (portion.topic, portion.partition) for one in batches[-1]):
                batches.append([])
                room = most
            end = min(portion.end, first + room)
            batches[-1].append(Portion(portion.topic, portion.partition, first, end))
            room -= end - first
            first = end
    return batches
