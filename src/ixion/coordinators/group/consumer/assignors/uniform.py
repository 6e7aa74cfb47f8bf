"""Uniform: members get equally many partitions, and keep what they have as far as that goes.

1. Everybody keeps what it had of the topics it still reads, up to its fair share: with 10 partitions and 4 readers that
   is 2, and for two of them 3. (With different subscriptions there is no such number; all is kept at first.)
2. What is free then goes to whoever has least, the partitions with the fewest readers first.
3. While one reader has two more than another that could take one of them, it hands one over. (Only with different
   subscriptions; see `unlike`.)
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heapreplace

from ixion.coordinators.group.consumer.assignment import Assignment
from ixion.coordinators.group.consumer.assignors.spec import Spec
from ixion.coordinators.group.consumer.assignors.unlike import Unlike

Partition = tuple[bytes, int]


def assign_uniform(spec: Spec) -> dict[str, Assignment]:
    order = spec.in_order()
    shares: dict[str, set[Partition]] = {member_id: set() for member_id in order}
    if len({reader.topics for reader in spec.readers.values()}) > 1:
        free = _keep(spec, order, shares, alike=False)
        unlike = Unlike(spec, order, shares)
        unlike.hand_out(free)
        unlike.balance()
        return unlike.assignments()
    if order:
        _hand_out(order, shares, _keep(spec, order, shares, alike=True))
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


def _hand_out(order: list[str], shares: dict[str, set[Partition]], free: list[Partition]) -> None:
    heap = [(len(shares[member_id]), place) for place, member_id in enumerate(order)]
    heapify(heap)
    for partition in free:
        size, place = heap[0]
        shares[order[place]].add(partition)
        heapreplace(heap, (size + 1, place))


def _by_topic(share: set[Partition]) -> Assignment:
    topics: defaultdict[bytes, set[int]] = defaultdict(set)
    for topic, number in share:
        topics[topic].add(number)
    return {topic: frozenset(numbers) for topic, numbers in topics.items()}
