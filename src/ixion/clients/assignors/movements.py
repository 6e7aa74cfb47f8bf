"""Which partitions have moved from which member to which while a group is balanced.

If t0 has moved from a to b, and t1 is to move from b to a, t0 moves back instead: the same balance, one move less.
"""

from __future__ import annotations

from ixion.clients.assignors.hash_order import PlaceSet
from ixion.clients.metadata import TopicPartition


class Movements:
    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, tuple[str, str]] = {}  # first owner and present one
        self._places: dict[str, dict[tuple[str, str], PlaceSet]] = {}  # by topic

    def actual(self, place: TopicPartition, source: str, target: str) -> TopicPartition:
        """The partition to move in place of this one."""
        source = self._pairs.get(place, (source, ""))[0]
        back = self._places.get(place.topic, {}).get((target, source))
        return place if back is None else back.first()

    def note(self, place: TopicPartition, source: str, target: str) -> None:
        known = self._pairs.pop(place, None)
        if known is not None:
            places = self._places[place.topic][known]
            places.remove(place)
            if not places:
                del self._places[place.topic][known]
            source = known[0]
        if source != target:
            self._pairs[place] = (source, target)
            self._places.setdefault(place.topic, {}).setdefault((source, target), PlaceSet()).add(place)
