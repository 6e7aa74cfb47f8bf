"""Partitions by topic id: the target of a member, what it has, or what it must revoke."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

Assignment = Mapping[bytes, frozenset[int]]  # has no topic without partitions

NOTHING: Assignment = {}


class Named(Protocol):
    """A topic id and partitions, as messages and records have them."""

    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


def assignment_of(topics: Iterable[Named]) -> Assignment:
    found: dict[bytes, frozenset[int]] = {}
    for topic in topics:
        if topic.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return found


def pairs(assignment: Assignment) -> list[tuple[bytes, tuple[int, ...]]]:
    """In a fixed order: records and answers look the same for the same assignment."""
    return [(topic_id, tuple(sorted(assignment[topic_id]))) for topic_id in sorted(assignment)]


def count(assignment: Assignment) -> int:
    return sum(len(partitions) for partitions in assignment.values())


def overlap(first: Assignment, second: Assignment) -> Assignment:
    return _kept({topic: partitions & second.get(topic, frozenset()) for topic, partitions in first.items()})


def without(first: Assignment, second: Assignment) -> Assignment:
    return _kept({topic: partitions - second.get(topic, frozenset()) for topic, partitions in first.items()})


def together(first: Assignment, second: Assignment) -> Assignment:
    both = dict(first)
    for topic, partitions in second.items():
        both[topic] = both.get(topic, frozenset()) | partitions
    return both


def contains(whole: Assignment, part: Assignment) -> bool:
    return all(partitions <= whole.get(topic, frozenset()) for topic, partitions in part.items())


def _kept(assignment: dict[bytes, frozenset[int]]) -> Assignment:
    return {topic: partitions for topic, partitions in assignment.items() if partitions}
