"""A share group: members, their targets, and which share partitions exist. No I/O, no clock.

As in a consumer group, the *group epoch* grows with every change that may need another assignment, and the *assignment
epoch* is the group epoch for which the targets were computed. A member moves to its target at once: a partition may
have several members, so nothing is revoked first.

A partition is assigned once its state is stored at the share coordinator:

    subscribed ──> initializing ──> initialized ──> deleting (its offsets are deleted) ──> gone

The group epoch at that moment is the state epoch; when offsets are altered, a higher one fences what leaders have.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from sys import getsizeof
from typing import Final

from ixion.broker.coordinators.group.consumer.assignment import NOTHING, Assignment
from ixion.broker.coordinators.group.topics import Topic, TopicLookup, hash_of

BYTES_PER_GROUP: Final = 2_500
BYTES_PER_MEMBER: Final = 1_250
BYTES_PER_TEXT: Final = 50
BYTES_PER_PARTITION: Final = 40  # a number in a set; with targets and assignments, some 100

NO_TOPICS: Final[frozenset[str]] = frozenset()
Partition = tuple[bytes, int]  # a topic id and a number


class ShareGroupState(Enum):
    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True, kw_only=True)
class ShareMember:
    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = 0
    assigned: Assignment = field(default_factory=dict)

    @property
    def held_bytes(self) -> int:
        return self.own_bytes + sum(map(getsizeof, self.topics)) + len(self.topics) * BYTES_PER_TEXT

    @property
    def own_bytes(self) -> int:
        """Without its topics, of which there may be thousands."""
        texts = (self.member_id, self.client_id, self.client_host, self.rack_id or "")
        return BYTES_PER_MEMBER + sum(map(getsizeof, texts)) + len(texts) * BYTES_PER_TEXT


class KnownTopic:
    """The share partitions of a topic."""

    __slots__ = ("initialized", "initializing", "name")

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.initializing: set[int] = set()
        self.initialized: set[int] = set()


class ShareGroup:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 1  # a joining member has epoch 0, so the first epoch that it gets must be higher
        self.assignment_epoch = 1
        self.assigned_ms = 0  # when the targets were computed
        self.metadata_hash = 0  # of the subscribed topics at this epoch
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.known: dict[bytes, KnownTopic] = {}  # the share partitions, by topic id
        self.deleting: dict[bytes, str] = {}  # topics whose offsets are being deleted, by id
        self.names: Counter[str] = Counter()  # how many members subscribe to a topic; no entry is 0
        self.members_bytes = 0
        self._changes = 0  # of the topics in `names`
        self._subscribed: tuple[tuple[int, int], list[Topic]] | None = None
        self.seen_version = -1  # of the cluster's topics, at the last look; -1: look again
        self.is_computing = False  # a computation of targets runs, in turns of the loop
        self.is_initializing = False  # the share coordinator is asked
        self.is_going = False  # it is being deleted
        self.dead = False

    @property
    def state(self) -> ShareGroupState:
        if self.dead:
            return ShareGroupState.DEAD
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def held_bytes(self) -> int:
        """Roughly the memory that the group takes."""
        partitions = sum(len(topic.initialized) + len(topic.initializing) for topic in self.known.values())
        return BYTES_PER_GROUP + getsizeof(self.group_id) + self.members_bytes + partitions * BYTES_PER_PARTITION

    def put(self, member: ShareMember) -> None:
        """Add a member, or replace what is known of it."""
        known = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if known is not None and known.topics is member.topics:  # as after most heartbeats
            self.members_bytes += member.own_bytes - known.own_bytes
            return
        before = NO_TOPICS if known is None else known.topics
        self._count(member.topics - before, before - member.topics)
        self.members_bytes += member.held_bytes - (0 if known is None else known.held_bytes)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self.targets.pop(member_id, None)
        if member is not None:
            self._count(NO_TOPICS, member.topics)
            self.members_bytes -= member.held_bytes

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, NOTHING)

    def subscribed(self, topics: TopicLookup) -> list[Topic]:
        """The existing topics that members subscribe to, remembered. They may name many that do not exist."""
        state = (topics.version, self._changes)
        if self._subscribed is None or self._subscribed[0] != state:
            names, known = self.names, topics.names()
            wanted = names if len(names) <= len(known) else filter(names.__contains__, known)
            found = [topic for name in sorted(wanted) if (topic := topics.by_name(name)) is not None]
            self._subscribed = (state, found)
        return self._subscribed[1]

    def hash_topics(self, topics: TopicLookup) -> int:
        return hash_of(self.subscribed(topics))

    def reads(self, topic: str) -> bool:
        return topic in self.names

    def missing(self, topics: TopicLookup) -> list[tuple[Topic, list[int]]]:
        """The partitions of subscribed topics whose state is not initialized."""
        found: list[tuple[Topic, list[int]]] = []
        for topic in self.subscribed(topics):
            known = self.known.get(topic.topic_id)
            if topic.topic_id in self.deleting:
                continue
            if known is None:
                found.append((topic, list(range(topic.partitions))))
            elif len(known.initialized) < topic.partitions:
                found.append((topic, [each for each in range(topic.partitions) if each not in known.initialized]))
        return found

    def _count(self, added: frozenset[str], removed: frozenset[str]) -> None:
        before = len(self.names)
        self.names.update(added)
        self._changes += len(self.names) != before
        gone = False
        for name in removed:
            self.names[name] -= 1
            if not self.names[name]:
                del self.names[name]
                gone = True
        self._changes += gone
