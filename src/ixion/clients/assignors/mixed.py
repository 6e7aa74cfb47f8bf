"""The shares of members whose subscriptions differ: as even as these allow.

Members keep what they own and still may have. Each remaining partition goes to the subscriber of its topic with the
fewest partitions; topics with few subscribers come first, because they have the least choice. Then partitions move, one
by one, from a member to one that has at least two fewer: first those just assigned, then all. If the moves did not make
the group more even, they are undone.

Example: a owns t0 t1 t2 t3 and subscribes to t; b subscribes to t and u, which has one partition. u0 goes to b. a has
three more than b, so t0 moves to b: a t1 t2 t3, b u0 t0.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping, Sequence

from ixion.clients.assignors.locality import Locality
from ixion.clients.assignors.members import Assignment, Members
from ixion.clients.assignors.movements import Movements
from ixion.clients.metadata import TopicPartition


class MixedShares:
    def __init__(self, members: Members, owned: Assignment, counts: Mapping[str, int], near: Locality) -> None:
        self._counts = counts
        self._near = near
        self._wants = {name: members[name].topics & counts.keys() for name in owned}
        self._readers = {topic: [name for name in owned if topic in self._wants[name]] for topic in counts}
        self._held: Assignment = {}
        self._holders: dict[TopicPartition, str] = {}
        self._held_of: dict[str, Counter[str]] = {topic: Counter() for topic in counts}  # by topic, then member
        self._ranking: list[tuple[int, str]] = []  # number of partitions, member
        self._previous = previous_owners(members, owned)
        self._movements = Movements()
        self._must_revoke = False
        self._is_even: bool | None = None  # None: to be found out
        for name, places in owned.items():
            self._held[name] = []
            for place in places:
                if place.topic in self._wants[name] and not near.is_far(name, place):
                    self._take(name, place)
                else:
                    self._must_revoke = True
            self._ranking.append((len(self._held[name]), name))
        self._ranking.sort()

    def build(self) -> Assignment:
        topics = sorted(self._counts, key=lambda topic: (len(self._readers[topic]), topic))
        places = [TopicPartition(topic, number) for topic in topics for number in range(self._counts[topic])]
        left = [place for place in places if place not in self._holders]
        is_first = not self._ranking[-1][0]  # no member had anything
        if self._near.matters:
            for place in left:
                self._give(place, only_near=True)
        for place in left:
            if place not in self._holders:
                self._give(place, only_near=False)
        fixed = {name: self._held[name] for name in self._held if not self._can_change(name)}
        for name in fixed:
            self._rank_out(name)
        self._even_out([place for place in places if self._is_shared(place)], left, has_state=not is_first)
        return self._held

    def _even_out(self, places: list[TopicPartition], left: list[TopicPartition], *, has_state: bool) -> None:
        before = {name: list(held) for name, held in self._held.items()}
        score = self._score()
        if not self._must_revoke:
            self._move([place for place in left if self._is_shared(place)])
        if self._move(places) and has_state and self._score() >= score:
            self._held = before

    def _is_shared(self, place: TopicPartition) -> bool:
        return len(self._readers[place.topic]) > 1

    def _can_change(self, name: str) -> bool:
        """Whether the member could gain or lose a partition."""
        most = sum(self._counts[topic] for topic in self._wants[name])
        return len(self._held[name]) < most or any(self._is_shared(place) for place in self._held[name])

    def _score(self) -> int:
        """The sum of the differences of each pair of members; 0 if all have the same number."""
        sizes = sorted(size for size, _ in self._ranking)
        return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sizes))

    def _give(self, place: TopicPartition, *, only_near: bool) -> None:
        for _, name in self._ranking:
            if place.topic in self._wants[name] and not (only_near and self._near.is_far(name, place)):
                self._rank_out(name)
                self._take(name, place)
                self._rank_in(name)
                return

    def _move(self, places: Sequence[TopicPartition]) -> bool:
        """Move partitions until no move makes the group more even. True if there was any move."""
        has_moved = False
        while True:
            score, moved = self._score(), False
            for place in places:
                if self._is_balanced():
                    break
                moved |= self._improve(place)
            has_moved |= moved
            if not moved or self._score() >= score:
                return has_moved

    def _is_balanced(self) -> bool:
        """Whether no partition of any topic could go to a member that has at least two fewer."""
        if self._is_even is None:
            self._is_even = self._ranking[-1][0] - self._ranking[0][0] <= 1 or not any(
                max(len(self._held[name]) for name in holders) > min(len(self._held[name]) for name in readers) + 1
                for holders, readers in zip(self._held_of.values(), self._readers.values(), strict=True)
            )
        return self._is_even

    def _improve(self, place: TopicPartition) -> bool:
        size = len(self._held[self._holders[place]])
        before = self._previous.get(place)
        if before is not None and place.topic in self._wants[before] and size > len(self._held[before]) + 1:
            self._hand_over(place, before)
            return True
        if size <= min(len(self._held[name]) for name in self._readers[place.topic]) + 1:
            return False
        self._hand_over(place, next(name for _, name in self._ranking if place.topic in self._wants[name]))
        return True

    def _hand_over(self, place: TopicPartition, to: str) -> None:
        """Move this partition, or instead one of its topic that moved the other way before."""
        actual = self._movements.actual(place, self._holders[place], to)
        holder = self._holders[actual]
        self._rank_out(holder)
        self._rank_out(to)
        self._movements.note(actual, holder, to)
        self._held[holder].remove(actual)
        count = self._held_of[actual.topic]
        count[holder] -= 1
        if not count[holder]:
            del count[holder]
        self._take(to, actual)
        self._rank_in(to)
        self._rank_in(holder)
        self._is_even = None

    def _take(self, name: str, place: TopicPartition) -> None:
        self._held[name].append(place)
        self._holders[place] = name
        self._held_of[place.topic][name] += 1

    def _rank_out(self, name: str) -> None:
        entry = (len(self._held[name]), name)
        at = bisect_left(self._ranking, entry)
        if at < len(self._ranking) and self._ranking[at] == entry:
            del self._ranking[at]

    def _rank_in(self, name: str) -> None:
        insort(self._ranking, (len(self._held[name]), name))


def previous_owners(members: Members, owned: Assignment) -> dict[TopicPartition, str]:
    """The previous owners of partitions that were also claimed in an older generation."""
    newest = max(members[name].generation for name in owned)
    found: dict[TopicPartition, str] = {}
    for name in owned:
        generation = members[name].generation
        if generation < newest:
            for place in members[name].owned:
                if place not in found or generation > members[found[place]].generation:
                    found[place] = name
    return found
