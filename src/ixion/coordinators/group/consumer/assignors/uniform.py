"""Uniform: members get equally many partitions, and keep what they have as far as that goes.

1. Everybody keeps what it had of the topics it still reads, up to its fair share: with 10 partitions and 4 readers that
   is 2, and for two of them 3. (With different subscriptions there is no such number; all is kept at first.)
2. What is free then goes to whoever has least, the partitions with the fewest readers first.
3. While one reader has two more than another that could take one of them, it hands one over.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heapreplace

from ixion.coordinators.group.consumer.assignment import Assignment
from ixion.coordinators.group.consumer.assignors.spec import Spec

Partition = tuple[bytes, int]


def assign_uniform(spec: Spec) -> dict[str, Assignment]:
    order = spec.in_order()
    shares: dict[str, set[Partition]] = {member_id: set() for member_id in order}
    if order:
        alike = len({spec.readers[member_id].topics for member_id in order}) == 1
        free = _keep(spec, order, shares, alike)
        _hand_out(spec, order, shares, free, alike)
        if not alike:
            _balance(spec, order, shares)
    return {member_id: _by_topic(share) for member_id, share in shares.items()}


def _keep(spec: Spec, order: list[str], shares: dict[str, set[Partition]], alike: bool) -> list[Partition]:
    """What is left when everybody has kept what it may."""
    topics = {topic for reader in spec.readers.values() for topic in reader.topics}
    free = {(topic, number) for topic in topics for number in range(spec.partitions.get(topic, 0))}
    least, more = divmod(len(free), len(order)) if alike else (len(free), 0)
    for member_id in order:
        reader = spec.readers[member_id]
        had = sorted(
            (topic, number)
            for topic, numbers in reader.before.items()
            if topic in reader.topics
            for number in numbers
            if (topic, number) in free
        )
        quota = least
        if len(had) > least and more > 0:
            quota += 1
            more -= 1
        for partition in had[:quota]:
            shares[member_id].add(partition)
            free.discard(partition)
    return sorted(free)


def _hand_out(
    spec: Spec, order: list[str], shares: dict[str, set[Partition]], free: list[Partition], alike: bool
) -> None:
    place = {member_id: number for number, member_id in enumerate(order)}
    heaps: dict[bytes, list[tuple[int, int]]] = {}
    readers = {topic: [each for each in order if topic in spec.readers[each].topics] for topic, _ in free}
    if not alike:
        free.sort(key=lambda partition: (len(readers[partition[0]]), partition))
    shared: list[tuple[int, int]] = [(len(shares[member_id]), place[member_id]) for member_id in order]
    heapify(shared)
    for partition in free:
        topic = partition[0]
        if alike:
            heap = shared
        else:
            heap = heaps.get(topic) or [(len(shares[each]), place[each]) for each in readers[topic]]
            heaps[topic] = heap
            # Its readers may have been given partitions of other topics meanwhile.
            heap[:] = [(len(shares[order[number]]), number) for _, number in heap]
            heapify(heap)
        size, number = heap[0]
        shares[order[number]].add(partition)
        heapreplace(heap, (size + 1, number))


def _balance(spec: Spec, order: list[str], shares: dict[str, set[Partition]]) -> None:
    """Every hand-over brings two members closer together, so it ends."""
    moved = True
    while moved:
        moved = False
        for giver in sorted(order, key=lambda member_id: -len(shares[member_id])):
            for taker in sorted(order, key=lambda member_id: len(shares[member_id])):
                if len(shares[giver]) - len(shares[taker]) < 2:
                    break
                topics = spec.readers[taker].topics
                partition = next((each for each in sorted(shares[giver]) if each[0] in topics), None)
                if partition is not None:
                    shares[giver].discard(partition)
                    shares[taker].add(partition)
                    moved = True
                    break


def _by_topic(share: set[Partition]) -> Assignment:
    topics: defaultdict[bytes, set[int]] = defaultdict(set)
    for topic, number in share:
        topics[topic].add(number)
    return {topic: frozenset(numbers) for topic, numbers in topics.items()}
