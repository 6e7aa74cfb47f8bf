"""How the leader of a classic group spreads partitions over the members: range and round robin, as Kafka's clients do.

range        topic by topic, consecutive partitions: 7 partitions for a, b, c are a 0-2, b 3-4, c 5-6
roundrobin   all partitions of all topics in turn: a 0 3 6, b 1 4, c 2 5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ixion.clients.metadata import TopicPartition

Subscriptions = Mapping[str, frozenset[str]]  # member -> topics
Assignment = dict[str, list[TopicPartition]]


def by_range(subscriptions: Subscriptions, counts: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {member: [] for member in subscriptions}
    for topic, count in sorted(counts.items()):
        members = sorted(member for member, topics in subscriptions.items() if topic in topics)
        at = 0
        for place, member in enumerate(members):
            share = count // len(members) + (place < count % len(members))
            assignment[member] += [TopicPartition(topic, number) for number in range(at, at + share)]
            at += share
    return assignment


def round_robin(subscriptions: Subscriptions, counts: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {member: [] for member in subscriptions}
    members = sorted(subscriptions)
    at = 0
    for topic, count in sorted(counts.items()):
        if not any(topic in topics for topics in subscriptions.values()):
            continue
        for number in range(count):
            while topic not in subscriptions[members[at % len(members)]]:
                at += 1
            assignment[members[at % len(members)]].append(TopicPartition(topic, number))
            at += 1
    return assignment


ASSIGNORS: Final[dict[str, Callable[[Subscriptions, Mapping[str, int]], Assignment]]] = {
    "range": by_range,
    "roundrobin": round_robin,
}
