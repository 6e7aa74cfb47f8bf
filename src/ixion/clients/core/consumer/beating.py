"""A member whose group lives at the coordinator (KIP-848, KIP-932): everything travels with heartbeats.

A heartbeat with epoch 0 joins, one with a negative epoch leaves. The answer has the member's epoch and, when it has
changed, the assignment. Assigned topics are named by id, so an assignment waits for their metadata. A fenced member
owns nothing any more and joins again with epoch 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ixion._native import mypyc_attr
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, ConnectionMachine
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.consumer.member import FENCED, Member, MemberCall
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

JOINING: Final = 0
LEAVING: Final = -1


class Beat(NamedTuple):
    """What an answer to a heartbeat says."""

    code: ErrorCode
    message: str | None
    member_id: str | None
    epoch: int
    interval_ms: int
    assignment: tuple[tuple[bytes, tuple[int, ...]], ...] | None  # topic ids with partitions; None: as before


@mypyc_attr(allow_interpreted_subclasses=True)
class BeatingMember(Member):
    def __init__(self, client: Client, coordinator: Coordinator, instance_id: str | None) -> None:
        super().__init__(client, coordinator, instance_id)
        self._interval_s = 5.0
        self._target: tuple[tuple[bytes, tuple[int, ...]], ...] | None = None  # while some topic names are unknown
        self.topic_ids: dict[str, bytes] = {}  # of assigned topics, which the metadata may lack for a while
        self._says_all = True  # send everything: the coordinator does not know our subscription yet
        self._says_owned = False
        self._wants_in = False
        self._farewell: int | None = None  # the epoch to leave with

    # What differs between the protocols

    def make(self, machine: ConnectionMachine, epoch: int) -> tuple[ApiKey, int, Struct]:
        """The next heartbeat and its version. KafkaError if the coordinator does not speak one that will do."""
        raise NotImplementedError

    def read(self, answer: Struct) -> Beat:
        raise NotImplementedError

    def fault_of(self, beat: Beat) -> KafkaError:
        """The fault for the caller, of an answer that no retry can help."""
        return KafkaError(beat.code, f"group {self.coordinator.group!r}: {beat.message or beat.code.explanation}")

    # What they share

    def subscribe(self, topics: Sequence[str]) -> None:
        self.topics = tuple(topics)
        self._says_all = True
        if self.generation >= 0:
            self._next_s = 0.0
        else:
            self.must_rejoin = True

    def begin(self, owned: Sequence[TopicPartition]) -> None:  # noqa: ARG002  (`taken_over` says what is owned)
        self.must_rejoin = False
        self.has_lost = False
        if self.generation < 0:
            self._wants_in = True

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

    def leave_with(self, epoch: int | None, now_s: float) -> None:
        """Leave; the coordinator gets that epoch, if there is one."""
        if self.generation >= 0 and epoch is not None:
            self._farewell = epoch
            self.is_leaving = True
        self.lose()
        self._asked = None
        self._wants_in = False
        self.not_before_s = now_s

    def lose(self) -> None:
        super().lose()
        self._target = None
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
        beat = self.read(answer)
        self._next_s = now_s + self._interval_s
        if beat.code != ErrorCode.NONE:
            self._says_all = True
            self.hear(beat.code, now_s)
            if self.fault is not None:
                self.fault = self.fault_of(beat)
            return
        self.failures = 0
        self._wants_in = False
        self.generation = beat.epoch
        self.member_id = beat.member_id or self.member_id
        if beat.interval_ms > 0:
            self._interval_s = beat.interval_ms / 1000
            self._next_s = now_s + self._interval_s
        if beat.assignment is not None:
            self._target = beat.assignment
            self._resolve()
        if self._says_all or self._says_owned:
            self._next_s = now_s  # something changed while the heartbeat was in flight

    def _beat(self, machine: ConnectionMachine, now_s: float) -> None:
        epoch = JOINING if self.generation < 0 else self.generation
        if self._farewell is not None:
            epoch = self._farewell
        api, version, request = self.make(machine, epoch)
        if self._farewell is None:
            self._says_all = False
            self._says_owned = False
        self._asked = MemberCall(self, "heartbeat" if self._farewell is None else "leave")
        machine.send(api, version, request, self._asked, now_s)

    def _resolve(self) -> None:
        """Name the topics of the assignment, once the metadata has all of them."""
        target = self._target
        if target is None:
            return
        names = self.client.cluster.names
        if any(topic_id not in names for topic_id, _ in target):
            self.client.cluster.mark_stale()
            return
        self._target = None
        self.topic_ids.update({names[topic_id]: topic_id for topic_id, _ in target})
        self.assignment = sorted(
            [TopicPartition(names[topic_id], number) for topic_id, numbers in target for number in numbers]
        )
