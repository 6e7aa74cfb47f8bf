"""The shares of members with equal subscriptions: exactly even, and members keep as much as that allows.

Of 7 partitions for 3 members, each gets 2 and one gets 3. A member keeps what it owns up to 2, and the first that owns
3 or more keeps 3. The rest goes in turn to members with less than 2, then to those with exactly 2, until one has 3.
Partitions that are far from their owner (racks) are moved first.

`moving` are partitions that get a new owner while the old one may still read them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ixion.clients.assignors.locality import Locality
from ixion.clients.assignors.members import Assignment
from ixion.clients.metadata import TopicPartition


class EqualShares:
    def __init__(
        self, owned: Assignment, disputed: set[TopicPartition], counts: Mapping[str, int], near: Locality
    ) -> None:
        self.moving: set[TopicPartition] = set()
        self._owned = owned
        self._disputed = disputed
        self._near = near
        self._places = [TopicPartition(topic, number) for topic in sorted(counts) for number in range(counts[topic])]
        self._least, self._over = divmod(len(self._places), len(owned))  # _over members get one more than _least
        self._most = self._least + (self._over > 0)
        self._full = 0  # members that have _most, where that is more than _least
        self._below: list[str] = []  # members that have less than _least
        self._next_below = 0  # whose turn it is
        self._at_least: list[str] = []  # members that have _least and may get one more
        self._revoked: dict[TopicPartition, str] = {}  # from members that own them
        self._assignment: Assignment = {member: [] for member in owned}

    def build(self) -> Assignment:
        for member, places in self._owned.items():
            self._keep(member, places)
        kept = {place for places in self._assignment.values() for place in places}
        self._below.sort()
        self._at_least.sort()
        left = self._near.rarest_first([place for place in self._places if place not in kept])
        if self._near.matters:
            left = [place for place in left if not self._give_near(place)]
        self._give_round(left)
        return self._assignment

    def _keep(self, member: str, places: list[TopicPartition]) -> None:
        near = []
        for place in places:
            if self._near.is_far(member, place):
                self._revoked[place] = member
            elif place not in self._disputed:
                near.append(place)
        near.sort(key=lambda place: (place.partition, place.topic))
        if len(near) < self._least:
            self._below.append(member)
            share = len(near)
        elif len(near) >= self._most and self._full < self._over:
            share = self._most
            self._add_full()
        else:
            share = self._least
            if self._full < self._over:
                self._at_least.append(member)
        self._assignment[member] += near[:share]
        for place in near[share:]:
            self._revoked[place] = member

    def _add_full(self) -> None:
        self._full += 1
        if self._full == self._over:
            self._at_least.clear()

    def _give_near(self, place: TopicPartition) -> bool:
        """Give the partition to a member in the rack of a replica, if one has room."""
        at = self._near.next_near(place, self._below, self._next_below)
        if at >= 0:
            member = self._below[at]
            size = len(self._assignment[member]) + 1
            if size >= self._least:
                self._below.pop(at)
                if size < self._most and self._full < self._over:
                    self._at_least.append(member)
            else:
                at += 1
            self._next_below = at % len(self._below) if self._below else 0
        else:
            at = self._near.next_near(place, self._at_least, 0)
            if at < 0:
                return False
            member = self._at_least[at]
            if len(self._assignment[member]) + 1 == self._most:
                self._at_least.pop(at)
                self._add_full()
        self._give(place, member)
        return True

    def _give_round(self, places: list[TopicPartition]) -> None:
        at = 0
        for place in places:
            if not self._below:
                self._give(place, self._at_least.pop(0))
                continue
            if at >= len(self._below):
                at = 0
            member = self._below[at]
            if self._give(place, member) == self._least:
                self._below.pop(at)
                self._at_least.append(member)
            else:
                at += 1

    def _give(self, place: TopicPartition, member: str) -> int:
        self._assignment[member].append(place)
        if self._revoked.get(place, member) != member or place in self._disputed:
            self.moving.add(place)
        return len(self._assignment[member])
