"""What the leader of a classic group knows: members, their subscriptions and what they own; racks of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ixion.clients.metadata import TopicPartition


class Member(NamedTuple):
    """A member as the leader knows it from its subscription."""

    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1  # that it owned them in
    instance_id: str | None = None
    rack: str = ""
    # The generation in the subscription's own field. The sticky assignors keep another in their user data, and Java
    # compares that of one claim with the field of the other. None: they are equal.
    field_generation: int | None = None

    @property
    def joined_with(self) -> int:
        return self.generation if self.field_generation is None else self.field_generation


Members = Mapping[str, Member]  # by member id
Assignment = dict[str, list[TopicPartition]]
Racks = Mapping[TopicPartition, frozenset[str]]  # of the replicas of each partition
NO_RACKS: Final[Racks] = {}


def in_order(members: Members) -> list[str]:
    """Static members by their instance id, then the others by their member id: a restart, which changes member ids,
    does not move the partitions of static members."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, instance_id or member_id

    return sorted(members, key=rank)


def racks_matter(of_members: set[str], racks: Racks, places: list[TopicPartition]) -> bool:
    """False if no member is near any replica, or if every partition has replicas in the same racks."""
    each = [racks.get(place, frozenset()) for place in places]
    everywhere = frozenset().union(*each)
    return not of_members.isdisjoint(everywhere) and any(some != everywhere for some in each)
