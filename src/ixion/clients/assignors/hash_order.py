"""The iteration order of Java's HashMap and HashSet.

Kafka's assignors iterate over such maps, and the first of equal members gets a partition. A table has 16 bins and
doubles when it is more than three quarters full; it never shrinks. Iteration goes bin by bin, and within a bin in the
order of insertion:

    "a", "q", "b"  ->  a, b, q of 16 bins would be 1, 2, 1, so the walk is  a, q, b

(Java turns a bin with nine keys into a tree, with another order. With the member ids of coordinators that is one bin in
a hundred million.)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ixion.clients.metadata import TopicPartition
from ixion.language.model.placement import java_hash

BINS: Final = 16
MASK: Final = 0xFFFFFFFF


def in_hash_order(keys: Iterable[str]) -> list[str]:
    distinct = list(dict.fromkeys(keys))
    bins = bins_for(len(distinct))
    return sorted(distinct, key=lambda key: spread(java_hash(key) & MASK) & (bins - 1))


class PlaceSet:
    """A HashSet of partitions."""

    def __init__(self) -> None:
        self._places: dict[TopicPartition, int] = {}  # with their hashes, in the order of the puts
        self._bins = BINS

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, place: TopicPartition) -> None:
        self._places.setdefault(place, spread(31 * (31 + place.partition) + java_hash(place.topic) & MASK))
        self._bins = max(self._bins, bins_for(len(self._places)))

    def remove(self, place: TopicPartition) -> None:
        del self._places[place]

    def first(self) -> TopicPartition:
        return min(self._places, key=lambda place: self._places[place] & (self._bins - 1))


def bins_for(count: int) -> int:
    bins = BINS
    while count > bins * 3 // 4:
        bins *= 2
    return bins


def spread(value: int) -> int:
    return value ^ value >> 16
