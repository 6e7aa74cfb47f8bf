"""How the leader of a classic group spreads partitions over the members, as Kafka's clients do.

range               topic by topic, consecutive partitions: 7 partitions for a, b, c are a 0-2, b 3-4, c 5-6
roundrobin          all partitions of all topics in turn: a 0 3 6, b 1 4, c 2 5
sticky              balanced, and each member keeps what it had as far as that allows (`sticky`)
cooperative-sticky  the same; a partition that changes hands goes to nobody until its owner has given it up

Members come in one order for all of them: static ones by their instance id, then the others by their member id. So a
restart, which changes member ids, does not move the partitions of static members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ixion.clients.metadata import TopicPartition


class Member(NamedTuple):
    """What a member has told the leader."""

    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1  # that it owned them in
    instance_id: str | None = None


Members = Mapping[str, Member]  # by member id
Assignment = dict[str, list[TopicPartition]]


def in_order(members: Members) -> list[str]:
    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return instance_id is None, instance_id or member_id

    return sorted(members, key=rank)


def by_range(members: Members, counts: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {member: [] for member in members}
    order = in_order(members)
    for topic, count in sorted(counts.items()):
        readers = [member for member in order if topic in members[member].topics]
        at = 0
        for place, member in enumerate(readers):
            share = count // len(readers) + (place < count % len(readers))
            assignment[member] += [TopicPartition(topic, number) for number in range(at, at + share)]
            at += share
    return assignment


def round_robin(members: Members, counts: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {member: [] for member in members}
    order = in_order(members)
    at = 0
    for topic, count in sorted(counts.items()):
        if not any(topic in member.topics for member in members.values()):
            continue
        for number in range(count):
            while topic not in members[order[at % len(order)]].topics:
                at += 1
            assignment[order[at % len(order)]].append(TopicPartition(topic, number))
            at += 1
    return assignment


def sticky(members: Members, counts: Mapping[str, int]) -> Assignment:
    from ixion.clients.sticky import assign  # only the leader of a group needs it

    return assign(members, counts)


def cooperative_sticky(members: Members, counts: Mapping[str, int]) -> Assignment:
    """A member that claims a partition, in whatever generation, may still read it: no other gets it in this round."""
    claimed: dict[TopicPartition, set[str]] = {}
    for member_id, member in members.items():
        for place in member.owned:
            claimed.setdefault(place, set()).add(member_id)
    return {
        member_id: [place for place in places if claimed.get(place, set()) <= {member_id}]
        for member_id, places in sticky(members, counts).items()
    }


COOPERATIVE: Final = "cooperative-sticky"
STICKY: Final = "sticky"
ASSIGNORS: Final[dict[str, Callable[[Members, Mapping[str, int]], Assignment]]] = {
    "range": by_range,
    "roundrobin": round_robin,
    STICKY: sticky,
    COOPERATIVE: cooperative_sticky,
}
EAGER: Final = ("range", "roundrobin")  # what a member offers if it is not told otherwise
