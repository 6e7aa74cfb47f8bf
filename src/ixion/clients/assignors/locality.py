"""Which members are near which partitions, for the sticky assignors (KIP-881)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ixion.clients.assignors.members import Members, Racks, racks_matter
from ixion.clients.metadata import TopicPartition


class Locality:
    def __init__(self, members: Members, counts: Mapping[str, int], racks: Racks) -> None:
        of_members = {name: member.rack for name, member in members.items() if member.rack}
        places = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        self.matters = bool(of_members) and racks_matter(set(of_members.values()), racks, places)
        self._members = of_members if self.matters else {}
        self._racks: Racks = racks if self.matters else {}
        self._crowd = Counter(of_members.values())

    def is_near(self, member: str, place: TopicPartition) -> bool:
        """The member has a rack, and a replica is in it."""
        rack = self._members.get(member)
        return rack is not None and rack in self._racks.get(place, frozenset())

    def is_far(self, member: str, place: TopicPartition) -> bool:
        """The member has a rack, and no replica is in it."""
        return member in self._members and not self.is_near(member, place)

    def rarest_first(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Partitions near few members come first, because they have the least choice."""
        if not self.matters:
            return list(places)
        return sorted(places, key=lambda place: sum(self._crowd[rack] for rack in self._racks.get(place, frozenset())))

    def next_near(self, place: TopicPartition, members: Sequence[str], first: int) -> int:
        """The index of the next member that is near, from `first` on and around; -1 if none is."""
        for step in range(len(members)):
            at = (first + step) % len(members)
            if self.is_near(members[at], place):
                return at
        return -1
