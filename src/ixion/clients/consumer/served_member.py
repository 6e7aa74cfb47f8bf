"""A member of a consumer group (KIP-848): the coordinator assigns, and everything travels with heartbeats.

A heartbeat with epoch 0 joins, with epoch -1 leaves (-2 for a static member that comes back). The answer names the
member's epoch and, when it has changed, the partitions that the member should have. The member first gives up what it
should no longer have, and says by its next heartbeat what it owns; only then does the coordinator assign the rest. So
an assignment goes on in steps, and `join` is called for each:

    owned t0 t1, told t0        join((t0, t1)) -> t0: the caller gives up t1
    owned t0, told t0           join((t0,)) -> t0: the coordinator hears that t1 is free

A member that the coordinator has fenced owns nothing any more and joins anew with epoch 0. Not thread-safe.
"""

from __future__ import annotations

import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.coordinator import group_coordinator
from ixion.clients.deadline import Deadline
from ixion.clients.faults import check, error_code
from ixion.clients.group_offsets import commit_request
from ixion.clients.leaders import by_topic
from ixion.clients.metadata import TopicPartition
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k08_offset_commit import OffsetCommitResponse
from ixion.protocol.messages.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ixion.protocol.registry import ApiKey

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2  # a static member
FENCED: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
JOIN_S: Final = 330.0
ANSWER_S: Final = 15.0  # a third of the coordinator's usual session timeout


class ServedMember:
    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        rebalance_s: float,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.must_rejoin = True
        self.generation = -1  # the member's epoch, once it has joined
        self.member_id = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        self._cluster = cluster
        self._group = group
        self._topics = tuple(topics)
        self._rebalance_ms = int(rebalance_s * 1000)
        self._instance_id = instance_id
        self._assignor = assignor
        self._coordinator: Connection | None = None
        self._target: list[TopicPartition] | None = None  # what the coordinator wants us to have
        self._owned: list[TopicPartition] = []  # what we have told it that we own
        self._told_all = False  # whether it knows the subscription
        self._next_s = 0.0

    def subscribe(self, topics: Sequence[str]) -> None:
        self._topics = tuple(topics)
        self._told_all = False
        self.must_rejoin = True

    def join(self, owned: Sequence[TopicPartition] = ()) -> list[TopicPartition]:
        """What this member should read. If that is less than `owned`, give up the rest and call again."""

        def ask(within: Deadline) -> list[TopicPartition]:
            if owned and self.generation < 0:
                return []  # fenced: all of it is lost
            if self.generation < 0 or not self._told_all or self._target is None:
                self._beat(within)
            if self._target is None:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self._group!r} has not assigned yet")
            target = self._target
            if set(owned) <= set(target) and self._owned != target:
                self._owned = target
                self._beat(within, tells_owned=True)
            return target

        found = self._cluster.attempt(f"joining group {self._group!r}", ask, Deadline(JOIN_S))
        self.must_rejoin = self._target != found
        return list(found)

    def heartbeat_if_due(self) -> None:
        if self.generation < 0 or time.monotonic() < self._next_s:
            return
        try:
            self._beat(Deadline(ANSWER_S))
        except KafkaError as error:
            if not error.code.retriable and error.code != ErrorCode.BROKER_NOT_AVAILABLE:
                raise
            self._coordinator = None
            self._cluster.forget()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether they are committed; not if the coordinator has fenced this member."""
        if not offsets or self.generation < 0:
            return not offsets

        def ask(within: Deadline) -> bool:
            request, newest = commit_request(self._group, offsets, self.generation, self.member_id, self._instance_id)
            broker = self._connection(within)
            version = broker.version(ApiKey.OFFSET_COMMIT, oldest=9, newest=newest)
            answer = broker.call(ApiKey.OFFSET_COMMIT, request, OffsetCommitResponse, within, version)
            for code in {part.error_code for topic in answer.topics for part in topic.partitions}:
                if code in FENCED:
                    self._fence()
                    return False
                if code == ErrorCode.STALE_MEMBER_EPOCH:
                    self._beat(within)  # our epoch has moved on; with the new one it goes through
                    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the epoch was not the newest")
                self._check(code, f"committing the offsets of group {self._group!r}")
            return True

        return self._cluster.attempt(f"committing the offsets of group {self._group!r}", ask)

    def leave(self) -> None:
        """Best effort: the session times out."""
        if self.generation >= 0:
            try:
                epoch = LEAVING if self._instance_id is None else LEAVING_FOR_A_WHILE
                self._send(self._request(epoch), Deadline(5.0))
            except KafkaError:
                pass
        self._fence()

    def _request(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self.member_id, member_epoch=epoch, instance_id=self._instance_id
        )

    def _beat(self, within: Deadline, *, tells_owned: bool = False) -> None:
        joining = self.generation < 0
        tells_all = joining or not self._told_all
        request = self._request(JOINING if joining else self.generation)
        if tells_all:
            request = request.replace(
                rebalance_timeout_ms=self._rebalance_ms,
                subscribed_topic_names=self._topics,
                server_assignor=self._assignor,
            )
        if tells_all or tells_owned:
            request = request.replace(topic_partitions=self._wire_owned(within))
        answer = self._send(request, within)
        code = error_code(answer.error_code)
        if code in FENCED:
            self._fence()
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self._group!r} has fenced this member")
        self._check(answer.error_code, f"group {self._group!r}", answer.error_message)
        self.generation = answer.member_epoch
        self.member_id = answer.member_id or self.member_id
        self._told_all = True
        self._next_s = time.monotonic() + answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            target = self._read(answer.assignment, within)
            self.must_rejoin = self.must_rejoin or target != self._target
            self._target = target

    def _fence(self) -> None:
        self.generation, self._target, self._owned, self._told_all, self.must_rejoin = -1, None, [], False, True

    def _wire_owned(self, within: Deadline) -> tuple[TopicPartitions, ...]:
        return tuple(
            TopicPartitions(topic_id=self._cluster.topic(topic, within).topic_id, partitions=tuple(numbers))
            for topic, numbers in by_topic(self._owned).items()
        )

    def _read(self, assignment: Assignment, within: Deadline) -> list[TopicPartition]:
        """A topic whose name we cannot find out is left out; the coordinator names it again when it matters."""
        found = self._cluster.metadata(self._topics, within).topics
        names = {topic.topic_id: name for name, topic in found.items()}
        return sorted(
            TopicPartition(names[each.topic_id], number)
            for each in assignment.topic_partitions
            if each.topic_id in names
            for number in each.partitions
        )

    def _check(self, code: int, about: str, message: str | None = None) -> None:
        if code in MOVED:
            self._coordinator = None
        check(code, message, about)

    def _connection(self, within: Deadline) -> Connection:
        if self._coordinator is None or self._coordinator.closed:
            self._coordinator = group_coordinator(self._cluster, self._group, within)
        return self._coordinator

    def _send(self, request: ConsumerGroupHeartbeatRequest, within: Deadline) -> ConsumerGroupHeartbeatResponse:
        return self._connection(within).call(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, request, ConsumerGroupHeartbeatResponse, within
        )
