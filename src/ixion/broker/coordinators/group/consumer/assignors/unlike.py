"""Sharing out among members that do not all read the same topics.

    hand_out    every free partition goes to the reader of its topic that has the fewest partitions
    balance     while a member with partitions of a topic has two more than another reader, it hands one over

Heaps find the readers with the fewest and the most partitions: one heap for the readers of a topic (topics with the
same readers share theirs) and one for the members that have partitions of it. An entry has the number of partitions
that its member had when it was pushed. A count that is too small in a heap of readers, or too large in a heap of
givers, is corrected when it reaches the top. A count that is wrong the other way would never reach the top, so a member
whose count changes that way is pushed again:

    member 3 gives one away, 5 → 4     readers: (4, 3) is pushed        givers: (-5, 3) is put right at the top
    member 7 takes it,       1 → 2     readers: (1, 7) is put right     givers: (-2, 7) is pushed

So a step costs one look per topic of the member, however many members there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.consumer.assignors.spec import Spec
from ixion.timer.turns import Steps, sort_steps

Partition = tuple[bytes, int]
Heap = list[tuple[int, int]]  # how many, place of the member
Held = defaultdict[bytes, list[int]]  # partitions by topic


def unlike_of(spec: Spec, order: list[str], shares: dict[str, set[Partition]]) -> Steps[Unlike]:
    held: list[Held] = []
    kinds: dict[frozenset[bytes], list[int]] = {}  # members by what they read
    for place, member_id in enumerate(order):
        has: Held = defaultdict(list)
        for topic, number in sorted(shares[member_id]):
            has[topic].append(number)
        held.append(has)
        kinds.setdefault(spec.readers[member_id].topics, []).append(place)
        yield
    sizes = [len(shares[member_id]) for member_id in order]
    kinds_of: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, topics in enumerate(kinds):
        for topic in topics:
            kinds_of[topic].append(number)
        yield
    members = list(kinds.values())
    shared: dict[tuple[int, ...], Heap] = {}
    readers: dict[bytes, Heap] = {}  # by topic
    for topic, numbers in kinds_of.items():
        key = tuple(numbers)
        if key not in shared:
            sized = ((sizes[place], place) for number in key for place in members[number])
            shared[key] = yield from sort_steps(sized)  # a sorted list is a heap
        readers[topic] = shared[key]
        yield
    heaps_of: list[list[Heap]] = [[] for _ in members]
    for key, heap in shared.items():
        for number in key:
            heaps_of[number].append(heap)
        yield
    reads_in: list[list[Heap]] = [[] for _ in order]  # by member, the heaps that it is in
    for number, places in enumerate(members):
        for place in places:
            reads_in[place] = heaps_of[number]
        yield
    return Unlike(order, held, sizes, readers, reads_in)


class Unlike:
    """A member is its index in `order`."""

    def __init__(
        self,
        order: list[str],
        held: list[Held],
        sizes: list[int],
        readers: dict[bytes, Heap],
        reads_in: list[list[Heap]],
    ) -> None:
        self._order = order
        self._held = held
        self._sizes = sizes
        self._readers = readers
        self._reads_in = reads_in
        self._givers: dict[bytes, Heap] = {}

    def hand_out(self, free: Iterable[Partition]) -> Steps[None]:
        """The partitions with the fewest readers first: those have the least choice."""
        readers = {topic: len(heap) for topic, heap in self._readers.items()}
        for _, (topic, number) in (yield from sort_steps((readers[partition[0]], partition) for partition in free)):
            place = self._least(topic)
            self._held[place][topic].append(number)
            self._sizes[place] += 1
            yield

    def balance(self) -> Steps[None]:
        """Terminates, because every hand-over brings two members closer together."""
        givers: defaultdict[bytes, Heap] = defaultdict(list)
        for place, held in enumerate(self._held):
            for topic in held:
                givers[topic].append((-self._sizes[place], place))
            yield
        self._givers = {}
        for topic, sized in givers.items():
            self._givers[topic] = yield from sort_steps(sized)
            yield
        topics = sorted(self._givers)
        moved = True
        while moved:
            moved = False
            for topic in topics:
                while self._hand_over(topic):
                    moved = True
                    yield
                yield

    def assignments(self) -> Steps[dict[str, Assignment]]:
        found: dict[str, Assignment] = {}
        for member_id, held in zip(self._order, self._held, strict=True):
            found[member_id] = {topic: frozenset(numbers) for topic, numbers in held.items() if numbers}
            yield
        return found

    def _hand_over(self, topic: bytes) -> bool:
        giver, taker = self._most(topic), self._least(topic)
        if self._sizes[giver] - self._sizes[taker] < 2:
            return False
        self._held[taker][topic].append(self._held[giver][topic].pop())
        self._sizes[giver] -= 1
        self._sizes[taker] += 1
        for heap in self._reads_in[giver]:
            heappush(heap, (self._sizes[giver], giver))
        for each, numbers in self._held[taker].items():
            if numbers:
                heappush(self._givers[each], (-self._sizes[taker], taker))
        return True

    def _least(self, topic: bytes) -> int:
        """Of the topic's readers, the one with the fewest partitions."""
        heap = self._readers[topic]
        while True:
            size, place = heap[0]
            if size == self._sizes[place]:
                return place
            heapreplace(heap, (self._sizes[place], place))

    def _most(self, topic: bytes) -> int:
        """Of the members that have partitions of the topic, the one with the most partitions."""
        heap = self._givers[topic]
        while True:
            size, place = heap[0]
            if not self._held[place][topic]:
                heappop(heap)
            elif -size == self._sizes[place]:
                return place
            else:
                heapreplace(heap, (-self._sizes[place], place))
