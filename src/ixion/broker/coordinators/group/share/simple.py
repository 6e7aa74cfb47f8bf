"""The assignor of share groups, by the name of Kafka's: simple.

A partition may have several members, so with more members than partitions each member gets one partition, and with
fewer each partition gets one member. Within that, loads differ by one at most, and members keep what they have.

    5 members, 3 partitions      A 0, B 1, C 2, D 0, E 1
    E leaves                     A 0, B 1, C 2, D 0
    2 members, 5 partitions      A 0 2 4, B 1 3

If members subscribe to different topics, each topic is assigned by itself among its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.share.group import Partition
from ixion.timer.turns import Steps

STEP = 64


def assign(
    members: Mapping[str, frozenset[bytes]],
    partitions: Mapping[bytes, Iterable[int]],
    before: Mapping[str, Assignment],
) -> Steps[dict[str, Assignment]]:
    """`members` maps ids to the ids of the topics that they read, `partitions` topics to their partitions."""
    order = sorted(members)
    found: dict[str, set[Partition]] = {member: set() for member in order}
    if len(set(members.values())) <= 1:
        readers = {topic: order for topic in partitions if order and topic in members[order[0]]}
        pools = [(order, [(topic, number) for topic in sorted(readers) for number in sorted(partitions[topic])])]
    else:
        pools = [
            ([member for member in order if topic in members[member]], [(topic, each) for each in sorted(numbers)])
            for topic, numbers in sorted(partitions.items())
        ]
    for some, pool in pools:
        if some and pool:
            there = set(pool)
            had: dict[str, list[Partition]] = {}
            for member in some:
                owned = before.get(member, {})
                keys = [(topic, number) for topic in sorted(owned) for number in sorted(owned[topic])]
                had[member] = [key for key in keys if key in there]
                yield
            yield from spread(some, pool, had, found)
    return {member: grouped(keys) for member, keys in found.items()}


def spread(
    members: Sequence[str],
    pool: Sequence[Partition],
    had: Mapping[str, Sequence[Partition]],
    found: dict[str, set[Partition]],
) -> Steps[None]:
    """Every partition gets a member and every member a partition, with as few of both as that takes."""
    each_member, more_members = divmod(max(len(pool), len(members)), len(members))
    each_partition, more_partitions = divmod(max(len(pool), len(members)), len(pool))
    readers = dict.fromkeys(pool, 0)
    loads = dict.fromkeys(members, 0)
    # Keep what stays within a fair share; `more` members and partitions may have one above it.
    for member in sorted(members, key=lambda each: -len(had[each])):
        for key in had[member]:
            extra_load = loads[member] >= each_member
            extra_reader = readers[key] >= each_partition
            if loads[member] >= each_member + (more_members > 0) or readers[key] >= each_partition + (
                more_partitions > 0
            ):
                continue
            found[member].add(key)
            more_members -= extra_load
            more_partitions -= extra_reader
            loads[member] += 1
            readers[key] += 1
        yield
    if len(pool) >= len(members):
        free = [(loads[member], place, member) for place, member in enumerate(members)]
        heapify(free)
        for number, key in enumerate(pool):
            if not readers[key]:
                load, place, member = free[0]
                found[member].add(key)
                heapreplace(free, (load + 1, place, member))
            if number % STEP == 0:
                yield
    else:
        wanted = [(readers[key], place, key) for place, key in enumerate(pool)]
        heapify(wanted)
        for member in members:
            if not loads[member]:
                count, place, key = heappop(wanted)
                found[member].add(key)
                heappush(wanted, (count + 1, place, key))
            yield


def grouped(keys: Iterable[Partition]) -> Assignment:
    topics: dict[bytes, set[int]] = {}
    for topic, number in keys:
        topics.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in topics.items()}
