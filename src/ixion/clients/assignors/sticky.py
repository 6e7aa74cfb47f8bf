"""Assigns partitions so that members keep what they had and the group is still balanced.

Members claim what they own. If two members claim a partition, the claim of the newer generation counts; if both are of
the same generation, neither does. If all members subscribe to the same topics, each gets its exact share (`equal`);
else partitions move one by one as long as that makes the group more even (`mixed`).

Java's assignor breaks its own rules in some cases; this one does not. It keeps no partitions that no longer exist, and
assigns none to a member that does not subscribe to its topic, even if that member owned it in an older generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ixion.clients.assignors.equal import EqualShares
from ixion.clients.assignors.hash_order import in_hash_order
from ixion.clients.assignors.locality import Locality
from ixion.clients.assignors.members import Assignment, Members, Racks
from ixion.clients.assignors.mixed import MixedShares
from ixion.clients.metadata import TopicPartition


class Shared(NamedTuple):
    assignment: Assignment
    moving: set[TopicPartition]  # another member may still read them


def assign(members: Members, counts: Mapping[str, int], racks: Racks) -> Shared:
    wanted = {topic for member in members.values() for topic in member.topics}
    existing = {topic: counts[topic] for topic in sorted(wanted) if counts.get(topic)}
    order = in_hash_order(members)
    claims = Claims(members, existing)
    for member in order:
        claims.take(member)
    near = Locality(members, existing, racks)
    if len({member.topics for member in members.values()}) == 1:
        shares = EqualShares(claims.owned, claims.disputed, existing, near)
        return Shared(shares.build(), shares.moving)
    assignment = MixedShares(members, claims.owned, existing, near).build()
    return Shared(assignment, changing_hands(members, assignment))


class Claims:
    """The partitions that members claim to own, with conflicts resolved."""

    def __init__(self, members: Members, counts: Mapping[str, int]) -> None:
        self.owned: Assignment = {}
        self.disputed: set[TopicPartition] = set()  # claimed twice in one generation
        self._members = members
        self._counts = counts
        self._holders: dict[TopicPartition, str] = {}  # the last claim that counted

    def take(self, member: str) -> None:
        generation = self._members[member].generation
        owned: list[TopicPartition] = []
        self.owned[member] = owned
        for place in self._members[member].owned:
            if not 0 <= place.partition < self._counts.get(place.topic, 0):
                continue
            other = self._holders.get(place)
            other_generation = -1 if other is None else self._members[other].joined_with
            if other is None:
                owned.append(place)
            elif generation == other_generation:
                self.disputed.add(place)
                self._give_up(other, place)
            elif generation > other_generation:
                owned.append(place)
                self._give_up(other, place)
            else:
                continue
            self._holders[place] = member

    def _give_up(self, member: str, place: TopicPartition) -> None:
        if place in self.owned[member]:
            self.owned[member].remove(place)


def changing_hands(members: Members, assignment: Assignment) -> set[TopicPartition]:
    given: set[TopicPartition] = set()
    taken: set[TopicPartition] = set()
    for member, places in assignment.items():
        given.update(set(places) - set(members[member].owned))
        taken.update(set(members[member].owned) - set(places))
    return given & taken
