"""The metadata of a client, and when it must be refreshed.

Leaders carry epochs. What a broker says about a partition replaces what we know unless it is older, whether it is in a
Metadata answer or the hint of a refusal (KIP-951: "not me, broker 3 leads, epoch 8"). A hint saves a refresh.

A topic is requested when a caller first wants it (`want`), when its metadata proves stale (`mark_stale`), and every
`max_age_s`. A topic that no caller has wanted for `max_idle_s` is forgotten. Failures of a topic (unknown, not
authorized) are kept for the callers that wait for it.

A new topic is requested alone and at once (KIP-526), so that a producer's thousandth topic costs as much as its first.
A topic with an incomplete answer (it is being created, or elects a leader) is requested again alone, after
`retry.backoff.ms`. All other refreshes request all topics in use, after that pause.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ixion.clients.address import Address
from ixion.clients.core.backoff import Backoff
from ixion.clients.core.checks import check_topic
from ixion.clients.core.connection import NEVER
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import ClusterMetadata, Node, Partition, Topic, TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID

MOST_REASONS: Final = 1000  # of topics that are no longer wanted
MISSING_S: Final = 5.0  # longer than a broker takes to create a topic


class ClusterState:
    def __init__(
        self, backoff: Backoff, *, max_age_s: float = 300.0, max_idle_s: float = 300.0, creates_topics: bool = False
    ) -> None:
        """With `creates_topics`, an unknown topic is no fault: the broker may be about to create it."""
        self.nodes: dict[int, Node] = {}
        self.controller = -1
        self.cluster_id: str | None = None
        self.topics: dict[str, Topic] = {}
        self.names: dict[bytes, str] = {}  # topics by id
        self.changes = 0  # counts up with everything learnt
        self.wants_all = False  # whether to request all topics, not only those that were named
        self.knows_all = False  # whether the last answer had all topics
        self._creates = creates_topics
        self._faults: dict[str, KafkaError] = {}
        self._reasons: dict[str, ErrorCode] = {}
        self._wanted: dict[str, float] = {}  # topics, and when each was last wanted
        self._new: dict[str, None] = {}  # of these, those that no broker was asked about yet
        self._unfinished: dict[str, None] = {}  # and those to ask about again
        self._missing_since_s: dict[str, float] = {}  # wanted topics that do not exist
        self.unheard: list[str] = []  # those that have been missing for MISSING_S, once each
        self._backoff = backoff
        self._max_age_s = max_age_s
        self._max_idle_s = max_idle_s
        self._is_stale = False
        self._learnt_s = -NEVER  # when all of them were last asked for
        self._failures = 0
        self._not_before_s = 0.0

    def want(self, name: str, now_s: float) -> Topic | None:
        """The metadata of a topic; requested if it is unknown. KafkaError if a broker has refused it.

        A failure is raised once; the next call requests the topic again.
        """
        topic = self.topics.get(name)
        if topic is None:
            fault = self._faults.pop(name, None)
            if fault is not None:
                self._forget(name)
                raise fault
            if name not in self._wanted:
                check_topic(name)
                self._ask_for(name)
        self._wanted[name] = now_s
        return topic

    def touch(self, name: str, now_s: float) -> None:
        """Note that a topic is still in use."""
        if name not in self._wanted:
            self._ask_for(name)
        self._wanted[name] = now_s

    def want_only(self, names: Iterable[str], now_s: float) -> None:
        """Keep exactly these topics in use."""
        keep = set(names)
        for name in [name for name in self._wanted if name not in keep]:
            self._forget(name)
            self._faults.pop(name, None)
            self._reasons.pop(name, None)
            if not self.wants_all:
                self._drop(name)
        for name in sorted(name for name in keep if name not in self._wanted):  # few: this is called often
            if not (self.wants_all and name in self.topics):  # a pattern has matched what is known
                self._ask_for(name)
            self._wanted[name] = now_s
        for name in self._wanted:
            self._wanted[name] = now_s

    def reason(self, name: str) -> str:
        """Why a broker last did not describe a topic."""
        code = self._reasons.get(name)
        return "" if code is None else code.explanation

    def leader(self, place: TopicPartition) -> Partition | None:
        """The partition, if its leader is known and up."""
        topic = self.topics.get(place.topic)
        if topic is None or not 0 <= place.partition < len(topic.partitions):
            return None
        partition = topic.partitions[place.partition]
        return partition if partition.leader in self.nodes else None

    def mark_stale(self) -> None:
        """Refresh as soon as the pause between two requests allows."""
        self._is_stale = True

    def is_due(self, now_s: float) -> bool:
        return now_s >= self.due_s

    @property
    def due_s(self) -> float:
        """When the next request is due; NEVER if nothing is wanted or stale."""
        if self._new and self._failures == 0:
            return 0.0
        if self._is_stale or self._new or self._unfinished:
            return self._not_before_s
        is_in_use = self._wanted or self.wants_all
        return max(self._learnt_s + self._max_age_s, self._not_before_s) if is_in_use else NEVER

    def wanted(self, now_s: float) -> list[str]:
        """The topics to request now. Drops topics that were not wanted for long."""
        for name in [name for name, at_s in self._wanted.items() if now_s - at_s > self._max_idle_s]:
            self._forget(name)
            self._drop(name)
        is_old = now_s >= self._learnt_s + self._max_age_s
        if self._is_stale or is_old or self.wants_all or not (self._new or self._unfinished):
            return sorted(self._wanted)
        return sorted(self._new | self._unfinished if now_s >= self._not_before_s else self._new)

    def learn(self, found: ClusterMetadata, asked: Iterable[str], now_s: float, *, is_all: bool = False) -> None:
        """Take a broker's answer about the requested topics, or about all."""
        self.nodes = found.nodes
        self.controller = found.controller
        self.cluster_id = found.cluster_id
        self._failures = 0
        all_asked = dict.fromkeys(asked)
        is_about_all = all(name in all_asked for name in self._wanted if name not in self._new)
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_all else ErrorCode.UNKNOWN_SERVER_ERROR
        for name in all_asked:
            topic = found.topics.get(name)
            self._faults.pop(name, None)
            self._new.pop(name, None)
            self._unfinished.pop(name, None)
            if topic is not None:
                self._keep(topic)
                self._reasons.pop(name, None)
                self._missing_since_s.pop(name, None)
                if name in self._wanted and any(partition.leader < 0 for partition in topic.partitions):
                    self._unfinished[name] = None  # an election is going on
                continue
            self._drop(name)
            code = found.faults.get(name, absent)
            self._reasons[name] = code
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._note_missing(name, now_s)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._creates:
                self._faults[name] = UnknownTopicError(name, list(self.topics))
                if name in self._wanted:
                    self._unfinished[name] = None  # another client may create it
            elif not code.retriable:
                self._faults[name] = KafkaError(code, f"topic {name!r}: {code.explanation}")
            elif name in self._wanted:
                self._unfinished[name] = None
        self.knows_all = is_all
        if is_all:
            for name in [name for name in self.topics if name not in found.topics]:
                self._drop(name)
            for topic in found.topics.values():
                self._keep(topic)
        if is_about_all or is_all:
            self._learnt_s = now_s
            self._is_stale = self.wants_all > is_all  # all were wanted while the request was in flight
        if len(self._reasons) > MOST_REASONS:
            self._reasons = {name: code for name, code in self._reasons.items() if name in self._wanted}
        self._not_before_s = now_s + self._backoff.pause_s(1)
        self.changes += 1

    def failed(self, now_s: float) -> None:
        """The request failed."""
        self._failures += 1
        self._is_stale = True
        self._not_before_s = now_s + self._backoff.pause_s(self._failures)

    def deny(self, fault: KafkaError, now_s: float) -> None:
        """No broker accepts us: fail the wanted topics, and request none until a caller wants one."""
        for name in self._wanted:
            if name not in self.topics:
                self._faults[name] = fault
        self._is_stale = False
        self._new.clear()
        self._unfinished.clear()
        self._learnt_s = now_s

    def hint(self, place: TopicPartition, leader: int, epoch: int, nodes: dict[int, Node]) -> bool:
        """Take the leader that a refusal names (KIP-951). True if it is new."""
        topic = self.topics.get(place.topic)
        if topic is None or leader < 0 or not 0 <= place.partition < len(topic.partitions):
            return False
        known = topic.partitions[place.partition]
        if epoch <= known.leader_epoch or (leader not in nodes and leader not in self.nodes):
            return False
        partitions = list(topic.partitions)
        partitions[place.partition] = known._replace(leader=leader, leader_epoch=epoch)
        self.topics[place.topic] = topic._replace(partitions=tuple(partitions))
        self.nodes = {**self.nodes, **nodes}
        self.changes += 1
        return True

    def addresses(self) -> list[Address]:
        return [node.address for node in self.nodes.values()]

    def _ask_for(self, name: str) -> None:
        """Request a topic. One that was refused before waits for the pause, so that no caller floods a broker."""
        if name in self._reasons:
            self._unfinished[name] = None
        else:
            self._new[name] = None

    def _forget(self, name: str) -> None:
        """Forget a topic that is no longer wanted."""
        self._wanted.pop(name, None)
        self._new.pop(name, None)
        self._unfinished.pop(name, None)
        self._missing_since_s.pop(name, None)

    def _note_missing(self, name: str, now_s: float) -> None:
        since_s = self._missing_since_s.get(name)
        if since_s is None:
            if name in self._wanted:
                self._missing_since_s[name] = now_s
        elif now_s - since_s >= MISSING_S:
            self._missing_since_s[name] = NEVER
            self.unheard.append(name)

    def _keep(self, topic: Topic) -> None:
        known = self.topics.get(topic.name)
        if known is not None and known.topic_id == topic.topic_id and len(known.partitions) <= len(topic.partitions):
            partitions = [
                old if old.leader_epoch > new.leader_epoch >= 0 else new
                for old, new in zip(known.partitions, topic.partitions, strict=False)
            ]
            partitions += topic.partitions[len(partitions) :]
            topic = topic._replace(partitions=tuple(partitions))
        self._drop(topic.name)
        self.topics[topic.name] = topic
        if topic.topic_id != ZERO_ID:
            self.names[topic.topic_id] = topic.name

    def _drop(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.names.pop(topic.topic_id, None)
