"""How the leader of a classic group spreads partitions over the members: the same partitions to the same members as
the assignors of Kafka's Java client, so that it does not matter which client leads a mixed group.

range               topic by topic, consecutive partitions: 7 partitions for a, b, c are a 0-2, b 3-4, c 5-6 (`ranges`)
roundrobin          all partitions of all topics in turn: a 0 3 6, b 1 4, c 2 5
sticky              balanced, and each member keeps what it had as far as that allows (`sticky`)
cooperative-sticky  the same; a partition that moves gets no new owner until its old owner has revoked it

With racks (KIP-881), a partition goes to a member in the rack of one of its replicas where the balance allows it; round
robin ignores racks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from ixion.clients.assignors.members import NO_RACKS, Assignment, Member, Members, Racks, in_order
from ixion.clients.metadata import TopicPartition

__all__ = [
    "ASSIGNORS",
    "COOPERATIVE",
    "DEFAULTS",
    "STICKY",
    "Assignment",
    "Member",
    "Members",
    "Racks",
    "by_range",
    "cooperative_sticky",
    "in_order",
    "round_robin",
    "sticky",
]


class Assignor(Protocol):
    def __call__(self, members: Members, counts: Mapping[str, int], racks: Racks = ..., /) -> Assignment:
        """`members` in the order of the JoinGroup answer; `counts` are the partitions of each topic that exists."""


def by_range(members: Members, counts: Mapping[str, int], racks: Racks = NO_RACKS) -> Assignment:
    from ixion.clients.assignors.ranges import assign  # only the leader of a group needs it

    return assign(members, counts, racks)


def round_robin(members: Members, counts: Mapping[str, int], racks: Racks = NO_RACKS) -> Assignment:  # noqa: ARG001
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


def sticky(members: Members, counts: Mapping[str, int], racks: Racks = NO_RACKS) -> Assignment:
    from ixion.clients.assignors.sticky import assign

    return assign(members, counts, racks).assignment


def cooperative_sticky(members: Members, counts: Mapping[str, int], racks: Racks = NO_RACKS) -> Assignment:
    from ixion.clients.assignors.sticky import assign

    found = assign(members, counts, racks)
    return {
        member: [place for place in places if place not in found.moving] for member, places in found.assignment.items()
    }


COOPERATIVE: Final = "cooperative-sticky"
STICKY: Final = "sticky"
ASSIGNORS: Final[dict[str, Assignor]] = {
    "range": by_range,
    "roundrobin": round_robin,
    STICKY: sticky,
    COOPERATIVE: cooperative_sticky,
}
DEFAULTS: Final = ("range", COOPERATIVE)  # so that a group can migrate to the second, member by member
