"""A member of a consumer group (KIP-848): the coordinator assigns, and everything travels with heartbeats.

A heartbeat with epoch 0 joins, with epoch -1 leaves (-2 for a static member that will return). The answer has the
member's epoch and, when it has changed, the assignment. The member first revokes what it should no longer have, and
reports what it owns with its next heartbeat; only then does the coordinator assign the rest. So an assignment takes
several steps:

    reads t0 t1, `assignment` is t0     the caller revokes t1      taken_over(t0): the coordinator knows that t1 is free

A fenced member owns nothing any more and joins again with epoch 0. The coordinator matches subscriptions by pattern.
Assigned topics are named by id, so metadata of all topics is requested then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, ConnectionMachine
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.consumer.member import FENCED, Member, MemberCall
from ixion.clients.faults import error_code
from ixion.clients.metadata import TopicPartition, by_topic
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import id_text, new_id
from ixion.protocol.messages.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2  # a static member
PATTERNS_FROM: Final = 1  # the first version that carries a pattern


class ServedMember(Member):
    def __init__(
        self,
        client: Client,
        coordinator: Coordinator,
        *,
        instance_id: str | None,
        rebalance_s: float,
        assignor: str | None,
        rack: str | None,
    ) -> None:
        super().__init__(client, coordinator, instance_id)
        self.is_cooperative = True
        self.pattern: str | None = None
        self.member_id = id_text(new_id())
        self._rebalance_ms = int(rebalance_s * 1000)
        self._assignor = assignor
        self._rack = rack
        self._interval_s = 5.0
        self._target: Assignment | None = None  # the assignment, while some topic names are unknown
        self._owned: list[TopicPartition] = []  # what we read
        self._says_all = True  # send everything: the coordinator does not know our subscription yet
        self._says_owned = False
        self._had_pattern = False  # the coordinator knows one
        self._wants_in = False
        self._farewell: int | None = None  # the epoch to leave with

    def subscribe(self, topics: Sequence[str]) -> None:
        self.topics = tuple(topics)
        self._says_all = True
        if self.generation >= 0:
            self._next_s = 0.0
        else:
            self.must_rejoin = True

    def follow(self, pattern: str | None) -> None:
        """Subscribe to topics that the coordinator matches."""
        self.pattern = pattern
        self.subscribe(())

    def begin(self, owned: Sequence[TopicPartition]) -> None:  # noqa: ARG002  (`taken_over` says what is owned)
        self.must_rejoin = False
        self.has_lost = False
        if self.generation < 0:
            self._wants_in = True
            self._owned = []

    def taken_over(self, owned: Sequence[TopicPartition], now_s: float) -> None:
        self._owned = sorted(owned)
        self._says_owned = True
        self._next_s = now_s

    def tick(self, now_s: float) -> None:
        self._wake_s = NEVER
        self._resolve()
        if self._asked is not None:
            return
        is_beating = self.generation >= 0 and now_s >= self._next_s
        if self._farewell is None and not self._wants_in and not is_beating:
            self._wake_s = self._next_s if self.generation >= 0 else NEVER
            return
        if now_s < self.not_before_s:
            self._wake_s = self.not_before_s
            return
        machine = self.coordinator.ready(now_s)
        if machine is None:
            self._wake_s = self.coordinator.wake_s
            fault = self.coordinator.fault
            if fault is not None:
                self._farewell = None
                self.is_leaving = False
                self.fault = fault
                self.coordinator.fault = None
                self.pause(now_s)
            return
        try:
            self._beat(machine, now_s)
        except KafkaError as refused:  # a version that the coordinator does not speak
            self.fault = refused
            self._farewell = None
            self.is_leaving = False
            self.pause(now_s)

    def leave(self, now_s: float, reason: str, *, says_so: bool | None = None) -> None:  # noqa: ARG002  (no room for it)
        if self.generation >= 0 and says_so is not False:
            is_for_good = self.instance_id is None or says_so is True
            self._farewell = LEAVING if is_for_good else LEAVING_FOR_A_WHILE
            self.is_leaving = True
        self.lose()
        self._asked = None
        self._wants_in = False
        self.not_before_s = now_s

    def lose(self) -> None:
        super().lose()
        self._target = None
        self._owned = []
        self._says_all = True

    def hear(self, code: ErrorCode, now_s: float) -> None:
        was_in = self.generation >= 0
        super().hear(code, now_s)
        if code in FENCED and not was_in:
            self.pause(now_s)

    def unanswered(self, kind: str, now_s: float) -> None:
        self._says_all = True
        if kind == "leave":
            self._farewell = None
            self.is_leaving = False
        self.pause(now_s)

    def take(self, kind: str, answer: Struct, now_s: float) -> None:
        if kind == "leave":
            self._farewell = None
            self.is_leaving = False
            return
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        self._next_s = now_s + self._interval_s
        code = error_code(answer.error_code)
        if code != ErrorCode.NONE:
            self._says_all = True
            self.hear(code, now_s)
            if self.fault is not None and answer.error_message:
                self.fault = KafkaError(code, f"group {self.coordinator.group!r}: {answer.error_message}")
            return
        self.failures = 0
        self._wants_in = False
        self.generation = answer.member_epoch
        self.member_id = answer.member_id or self.member_id
        if answer.heartbeat_interval_ms > 0:
            self._interval_s = answer.heartbeat_interval_ms / 1000
            self._next_s = now_s + self._interval_s
        if answer.assignment is not None:
            self._target = answer.assignment
            self._resolve()
        if self._says_all or self._says_owned:
            self._next_s = now_s  # something changed while the heartbeat was in flight

    def _beat(self, machine: ConnectionMachine, now_s: float) -> None:
        is_joining = self.generation < 0
        epoch = JOINING if is_joining else self.generation
        if self._farewell is not None:
            epoch = self._farewell
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.coordinator.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )
        oldest = PATTERNS_FROM if self.pattern is not None else 0
        version = machine.version(ApiKey.CONSUMER_GROUP_HEARTBEAT, oldest=oldest)
        if self._farewell is None:
            if is_joining or self._says_all:
                request = request.replace(
                    rebalance_timeout_ms=self._rebalance_ms,
                    rack_id=self._rack,
                    subscribed_topic_names=self.topics,
                    server_assignor=self._assignor,
                )
                if self.pattern is not None:
                    request = request.replace(subscribed_topic_regex=self.pattern)
                elif self._had_pattern:
                    request = request.replace(subscribed_topic_regex="")  # no longer
            if is_joining or self._says_all or self._says_owned:
                request = request.replace(topic_partitions=self._wire_owned())
            self._says_all = False
            self._says_owned = False
            self._had_pattern = self.pattern is not None
        self._asked = MemberCall(self, "heartbeat" if self._farewell is None else "leave")
        machine.send(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request, self._asked, now_s)

    def _resolve(self) -> None:
        """Name the topics of the assignment, once the metadata has all of them."""
        target = self._target
        if target is None:
            return
        names = self.client.cluster.names
        if any(each.topic_id not in names for each in target.topic_partitions):
            self.client.cluster.mark_stale()
            return
        self._target = None
        self.assignment = sorted(
            [
                TopicPartition(names[each.topic_id], number)
                for each in target.topic_partitions
                for number in each.partitions
            ]
        )

    def _wire_owned(self) -> tuple[TopicPartitions, ...]:
        topics = self.client.cluster.topics
        return tuple(
            [
                TopicPartitions(topic_id=topics[name].topic_id, partitions=tuple(numbers))
                for name, numbers in by_topic(self._owned).items()
                if name in topics
            ]
        )
