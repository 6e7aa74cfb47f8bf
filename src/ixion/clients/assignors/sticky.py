"""Shares out partitions so that members keep what they had, and are balanced all the same.

Members claim what they own. A partition that two claim belongs to the claim of the newer generation, and to neither if
both are of the same. If all members subscribe to the same topics, each gets its exact share (`equal`); else partitions
move one by one as long as that makes the group more even (`mixed`).

Where Java's assignor breaks its own rules, this one does not follow: partitions that do not exist any more are not
kept, and none goes to a member that does not subscribe to its topic, be it that it owned it in an older generation or
that it subscribes to nothing at all.
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
    """What members own by their own account, put in order."""

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
