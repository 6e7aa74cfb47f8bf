"""Uniform: members get equally many partitions, and keep as many of theirs as possible.

1. Each member keeps what it had of the topics it still reads, up to its fair share: with 10 partitions and 4 readers
   that is 2, and for two of them 3. (With different subscriptions there is no such number; members keep all at first.)
2. Free partitions go to the member with the fewest, those with the fewest readers first.
3. While one reader has two more than another that could take one of them, it hands one over. (Only with different
   subscriptions; see `unlike`.)
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heapreplace

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.consumer.assignors.spec import STEP, Spec
from ixion.broker.coordinators.group.consumer.assignors.unlike import unlike_of
from ixion.timer.turns import Steps, sort_steps

Partition = tuple[bytes, int]


def assign_uniform(spec: Spec) -> Steps[dict[str, Assignment]]:
    order = yield from spec.in_order()
    shares: dict[str, set[Partition]] = {}
    kinds: set[frozenset[bytes]] = set()
    for member_id in order:
        shares[member_id] = set()
        kinds.add(spec.readers[member_id].topics)
        yield
    if len(kinds) > 1:
        free = yield from _keep(spec, order, shares, kinds)
        unlike = yield from unlike_of(spec, order, shares)
        yield from unlike.hand_out(free)
        yield from unlike.balance()
        return (yield from unlike.assignments())
    if order:
        free = yield from _keep(spec, order, shares, kinds)
        yield from _hand_out(order, shares, free)
    assignments: dict[str, Assignment] = {}
    for member_id, share in shares.items():
        assignments[member_id] = _by_topic(share)
        yield
    return assignments


def _keep(
    spec: Spec, order: list[str], shares: dict[str, set[Partition]], kinds: set[frozenset[bytes]]
) -> Steps[list[Partition]]:
    """The partitions that are free when each member has kept what it may. `kinds` are the different subscriptions."""
    free: set[Partition] = set()
    topics: set[bytes] = set()
    for kind in kinds:
        topics |= kind
        yield
    for topic in topics:
        for number in range(spec.partitions.get(topic, 0)):
            free.add((topic, number))
            if number % STEP == 0:
                yield
    alike = len(kinds) == 1
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
        yield
    return (yield from sort_steps(free))


def _hand_out(order: list[str], shares: dict[str, set[Partition]], free: list[Partition]) -> Steps[None]:
    sizes = ((len(shares[member_id]), place) for place, member_id in enumerate(order))
    heap = yield from sort_steps(sizes)  # a sorted list is a heap
    for partition in free:
        size, place = heap[0]
        shares[order[place]].add(partition)
        heapreplace(heap, (size + 1, place))
        yield


def _by_topic(share: set[Partition]) -> Assignment:
    topics: defaultdict[bytes, set[int]] = defaultdict(set)
    for topic, number in share:
        topics[topic].add(number)
    return {topic: frozenset(numbers) for topic, numbers in topics.items()}
