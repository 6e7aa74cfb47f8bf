"""The topics, patterns and assignors that the members of a group want, counted as members come and go.

Walking over all members instead would cost fifty million steps while ten thousand members join one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from sys import getsizeof
from typing import Final

from ixion.broker.coordinators.group.classic.member import size_of
from ixion.broker.coordinators.group.consumer.member import Subscription

# Memory besides texts, as measured. A text is an entry in tables; a member is an object of several parts with timers, a
# target and a state; a group is several tables.
BYTES_PER_TEXT: Final = 50
BYTES_PER_MEMBER: Final = 1_250
BYTES_PER_GROUP: Final = 2_500
BYTES_PER_MATCH: Final = 200  # a topic that matches a pattern: a place in a set, and a name if it came from the log


class Demand:
    __slots__ = ("_assignors", "_protocols", "changes", "classic_members", "held_bytes", "regexes", "topics")

    def __init__(self) -> None:
        self.topics: Counter[str] = Counter()  # how many members name a topic; no entry is 0
        self.regexes: Counter[str] = Counter()
        self._assignors: Counter[str] = Counter()
        self.classic_members = 0
        self._protocols: Counter[str] = Counter()  # of the classic members, by name
        self.held_bytes = 0
        self.changes = 0  # counts topics and patterns that the first member named or the last one dropped

    def add(self, member_id: str, subscription: Subscription) -> None:
        self._count(member_id, subscription, 1)

    def remove(self, member_id: str, subscription: Subscription) -> None:
        self._count(member_id, subscription, -1)

    def assignor(self, offered: Sequence[str]) -> str:
        """The offered assignor that most members name; the first one if no member names any."""
        named = [(count, name) for name, count in self._assignors.items() if name in offered]
        return max(named, key=lambda each: each[0])[1] if named else offered[0]

    def supports(self, protocols: Iterable[str]) -> bool:
        """Whether every classic member has one of these protocols in common."""
        return any(self._protocols[name] == self.classic_members for name in protocols)

    @property
    def has_common_protocol(self) -> bool:
        """Whether the classic members could be a classic group, which elects a protocol that all of them have."""
        return self.supports(list(self._protocols))

    def _count(self, member_id: str, subscription: Subscription, step: int) -> None:
        kinds = len(self.topics), len(self.regexes)
        if step > 0:
            self.topics.update(subscription.topics)
        else:
            topics = self.topics
            for name in subscription.topics:
                left = topics[name] - 1
                if left:
                    topics[name] = left
                else:
                    topics.pop(name)  # quicker than `del`, which Counter implements in Python
        if subscription.regex:
            _step(self.regexes, subscription.regex, step)
        self.changes += kinds != (len(self.topics), len(self.regexes))
        if subscription.assignor:
            _step(self._assignors, subscription.assignor, step)
        if subscription.classic is not None:
            self.classic_members += step
            for name in dict.fromkeys(name for name, _ in subscription.classic.protocols):
                _step(self._protocols, name, step)
        self.held_bytes += step * bytes_of(member_id, subscription)


def bytes_of(member_id: str, subscription: Subscription) -> int:
    """Roughly the memory of a member; its record is smaller."""
    texts = subscription.texts()
    classic = 0 if subscription.classic is None else size_of(subscription.classic.protocols)
    return BYTES_PER_MEMBER + getsizeof(member_id) + sum(map(getsizeof, texts)) + len(texts) * BYTES_PER_TEXT + classic


def _step(counts: Counter[str], name: str, step: int) -> None:
    counts[name] += step
    if not counts[name]:
        del counts[name]
