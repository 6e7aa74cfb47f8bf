"""The tasks of a streams group: what one member has of them, and the sums of that.

A task is a subtopology and a partition number: it reads that partition of every source topic of the subtopology. It
runs as *active* on one member, and as *standby*, which keeps a copy of its state, on any number of others. A *warm-up*
task is a standby on its way to become active; the assignor makes none, as in Kafka 4.3, but records may have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

Task = tuple[str, int]  # subtopology, partition
Numbers = Mapping[str, frozenset[int]]  # by subtopology; has none without partitions

NO_NUMBERS: Final[Numbers] = {}
NO_PARTITIONS: Final[frozenset[int]] = frozenset()


class Named(Protocol):
    """A subtopology and partitions, as messages and records have them."""

    @property
    def subtopology_id(self) -> str: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


class Tasks(NamedTuple):
    active: Numbers = NO_NUMBERS
    standby: Numbers = NO_NUMBERS
    warmup: Numbers = NO_NUMBERS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    @property
    def size(self) -> int:
        return sum(len(numbers) for kind in self for numbers in kind.values())

    def each(self) -> Iterator[Task]:
        for kind in self:
            yield from each_of(kind)

    def has_active(self, task: Task) -> bool:
        return task[1] in self.active.get(task[0], NO_PARTITIONS)

    def overlap(self, other: Tasks) -> Tasks:
        return Tasks(*(overlap(mine, theirs) for mine, theirs in zip(self, other, strict=True)))

    def without(self, other: Tasks) -> Tasks:
        return Tasks(*(without(mine, theirs) for mine, theirs in zip(self, other, strict=True)))

    def together(self, other: Tasks) -> Tasks:
        return Tasks(*(together(mine, theirs) for mine, theirs in zip(self, other, strict=True)))

    def touches(self, other: Tasks) -> bool:
        return any(
            not numbers.isdisjoint(theirs.get(subtopology, NO_PARTITIONS))
            for mine, theirs in zip(self, other, strict=True)
            for subtopology, numbers in mine.items()
        )

    def contains(self, part: Tasks) -> bool:
        return part.without(self).is_empty


NO_TASKS: Final = Tasks()


def numbers_of(named: Iterable[Named]) -> Numbers:
    found: dict[str, frozenset[int]] = {}
    for each in named:
        if each.partitions:
            found[each.subtopology_id] = found.get(each.subtopology_id, NO_PARTITIONS) | frozenset(each.partitions)
    return found


def grouped(tasks: Iterable[Task]) -> Numbers:
    found: dict[str, set[int]] = {}
    for subtopology, number in tasks:
        found.setdefault(subtopology, set()).add(number)
    return {subtopology: frozenset(numbers) for subtopology, numbers in found.items()}


def each_of(kind: Numbers) -> Iterator[Task]:
    for subtopology, numbers in kind.items():
        for number in numbers:
            yield subtopology, number


def pairs(kind: Numbers) -> list[tuple[str, tuple[int, ...]]]:
    """In a fixed order: records and answers look the same for the same tasks."""
    return [(subtopology, tuple(sorted(kind[subtopology]))) for subtopology in sorted(kind)]


def overlap(first: Numbers, second: Numbers) -> Numbers:
    return _kept({key: numbers & second.get(key, NO_PARTITIONS) for key, numbers in first.items()})


def without(first: Numbers, second: Numbers) -> Numbers:
    return _kept({key: numbers - second.get(key, NO_PARTITIONS) for key, numbers in first.items()})


def together(first: Numbers, second: Numbers) -> Numbers:
    both = dict(first)
    for key, numbers in second.items():
        both[key] = both.get(key, NO_PARTITIONS) | numbers
    return both


def _kept(numbers: dict[str, frozenset[int]]) -> Numbers:
    return {key: each for key, each in numbers.items() if each}
