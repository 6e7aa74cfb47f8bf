"""Sharing out among members that do not all read the same topics.

    hand_out    every free partition goes to that reader of its topic who has least
    balance     while one who has partitions of a topic has two more than one who reads it, one is handed over

Who has least and who has most is asked of heaps, one for the readers of a topic (topics with the same readers share
theirs) and one for those who have partitions of it. An entry tells how many a member had when it was pushed. One that
tells less than is true in a heap of readers, or more in a heap of givers, is put right when it comes to the top; one
that errs to the other side would never come there, so a member whose number changes to that side is pushed anew:

    member 3 gives one away, 5 → 4     readers: (4, 3) is pushed        givers: (-5, 3) is put right at the top
    member 7 takes it,       1 → 2     readers: (1, 7) is put right     givers: (-2, 7) is pushed

So a step costs about as many looks as the member reads topics, however many members there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace

from ixion.coordinators.group.consumer.assignment import Assignment
from ixion.coordinators.group.consumer.assignors.spec import Spec

Partition = tuple[bytes, int]
Heap = list[tuple[int, int]]  # how many, place of the member


class Unlike:
    """Members go by their place in `order`."""

    def __init__(self, spec: Spec, order: list[str], shares: dict[str, set[Partition]]) -> None:
        self._order = order
        self._held: list[defaultdict[bytes, list[int]]] = []
        for member_id in order:
            held: defaultdict[bytes, list[int]] = defaultdict(list)
            for topic, number in sorted(shares[member_id]):
                held[topic].append(number)
            self._held.append(held)
        self._sizes = [len(shares[member_id]) for member_id in order]
        kinds: dict[frozenset[bytes], list[int]] = {}  # members by what they read
        for place, member_id in enumerate(order):
            kinds.setdefault(spec.readers[member_id].topics, []).append(place)
        kinds_of: defaultdict[bytes, list[int]] = defaultdict(list)
        for number, topics in enumerate(kinds):
            for topic in topics:
                kinds_of[topic].append(number)
        members = list(kinds.values())
        shared: dict[tuple[int, ...], Heap] = {}
        self._readers: dict[bytes, Heap] = {}  # by topic
        for topic, numbers in kinds_of.items():
            key = tuple(numbers)
            if key not in shared:
                shared[key] = [(self._sizes[place], place) for number in numbers for place in members[number]]
                heapify(shared[key])
            self._readers[topic] = shared[key]
        heaps_of: list[list[Heap]] = [[] for _ in members]
        for key, heap in shared.items():
            for number in key:
                heaps_of[number].append(heap)
        self._reads_in: list[list[Heap]] = [[] for _ in order]  # by member, the heaps that it is in
        for number, places in enumerate(members):
            for place in places:
                self._reads_in[place] = heaps_of[number]
        self._givers: dict[bytes, Heap] = {}

    def hand_out(self, free: Iterable[Partition]) -> None:
        """The partitions with the fewest readers first: those have the least choice."""
        readers = {topic: len(heap) for topic, heap in self._readers.items()}
        for topic, number in sorted(free, key=lambda partition: (readers[partition[0]], partition)):
            place = self._least(topic)
            self._held[place][topic].append(number)
            self._sizes[place] += 1

    def balance(self) -> None:
        """Every hand-over brings two members closer together, so it ends."""
        givers: defaultdict[bytes, Heap] = defaultdict(list)
        for place, held in enumerate(self._held):
            for topic in held:
                givers[topic].append((-self._sizes[place], place))
        for heap in givers.values():
            heapify(heap)
        self._givers = givers
        topics = sorted(givers)
        moved = True
        while moved:
            moved = False
            for topic in topics:
                while self._hand_over(topic):
                    moved = True

    def assignments(self) -> dict[str, Assignment]:
        return {
            member_id: {topic: frozenset(numbers) for topic, numbers in held.items() if numbers}
            for member_id, held in zip(self._order, self._held, strict=True)
        }

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
        """Of the topic's readers, the one who has least."""
        heap = self._readers[topic]
        while True:
            size, place = heap[0]
            if size == self._sizes[place]:
                return place
            heapreplace(heap, (self._sizes[place], place))

    def _most(self, topic: bytes) -> int:
        """Of those who have partitions of the topic, the one who has most."""
        heap = self._givers[topic]
        while True:
            size, place = heap[0]
            if not self._held[place][topic]:
                heappop(heap)
            elif -size == self._sizes[place]:
                return place
            else:
                heapreplace(heap, (-self._sizes[place], place))
