"""One member of a classic group: joins, hears of rebalances, commits, leaves.

    member = Membership(cluster, "billing", ["orders"])
    partitions = member.join()             # blocks until the group is balanced
    while not member.must_rejoin:
        ...                                # read for a while
        member.heartbeat_if_due()
        member.commit({partition: 17})
    member.leave()

A join has two halves. JoinGroup waits until all members have come; the one that the coordinator names leader learns
what the others subscribe to and decides who reads what (`assignors`). SyncGroup carries its decision to the
coordinator, and to each member its share. From then on the member has a generation: commits and heartbeats name it, and
the coordinator refuses those of an older one, so that a member which was given up for dead cannot overwrite anything.

There is no thread: the caller must come back within the session timeout. Not thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from ixion.clients.assignors import ASSIGNORS, COOPERATIVE, EAGER, STICKY, Member
from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.coordinator import group_coordinator
from ixion.clients.deadline import Deadline
from ixion.clients.faults import GarbledError, UnknownTopicError, check, error_code
from ixion.clients.group_offsets import commit_request
from ixion.clients.groups import read_assignment
from ixion.clients.leaders import by_topic
from ixion.clients.metadata import TopicPartition
from ixion.clients.sticky_data import read_generation, read_sticky, write_generation, write_sticky
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol import storage
from ixion.protocol.flaws import DecodeError
from ixion.protocol.messages.k08_offset_commit import OffsetCommitResponse
from ixion.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ixion.protocol.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from ixion.protocol.messages.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from ixion.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.protocol.stored import consumer_protocol
from ixion.protocol.stored.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

T = TypeVar("T", bound=Struct)

SESSION_S: Final = 45.0  # Kafka's default
REBALANCE_S: Final = 60.0  # how long the others wait for us in a rebalance
JOIN_S: Final = 330.0  # and how long we wait for others, who may take five minutes (Kafka's max.poll.interval.ms)
HEARTBEAT_S: Final = 3.0
LEAVES_BY_LIST: Final = 3  # the version of LeaveGroup from which it names several members
OUTDATED: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)  # the assignment is no longer valid


class Membership:
    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        session_s: float = SESSION_S,
        rebalance_s: float = REBALANCE_S,
        instance_id: str | None = None,
        strategies: Sequence[str] = EAGER,
    ) -> None:
        """`instance_id` makes it a static member (KIP-345), which does not leave when it is closed."""
        self.must_rejoin = True  # the assignment is no longer ours
        self.member_id = ""
        self.generation = -1
        self.is_leader = False
        self._cluster = cluster
        self._group = group
        self._topics = tuple(topics)
        self._session_s = session_s
        self._rebalance_s = rebalance_s
        self._instance_id = instance_id
        self._strategies = tuple(strategies)
        self._coordinator: Connection | None = None
        self._counts: dict[str, int] = {}  # partitions that the leader has assigned, by topic
        self._next_s = 0.0  # when the next heartbeat is due
        self._owned: tuple[TopicPartition, ...] = ()  # what it still reads while it joins
        self._last: tuple[Sequence[TopicPartition], int] = ((), -1)  # the last assignment, and its generation

    def subscribe(self, topics: Sequence[str]) -> None:
        """Other topics from now on; a rebalance makes it known."""
        self._topics = tuple(topics)
        self.must_rejoin = True

    def join(self, owned: Sequence[TopicPartition] = ()) -> list[TopicPartition]:
        """Take part in a rebalance; what this member reads from now on. `owned` is what a cooperative member reads
        meanwhile."""
        self._owned = tuple(owned)
        within = Deadline(JOIN_S)
        found = self._cluster.attempt(f"joining group {self._group!r}", self._join_once, within)
        self.must_rejoin = False
        self._next_s = time.monotonic() + HEARTBEAT_S
        self._last = found, self.generation
        return found

    def heartbeat_if_due(self) -> None:
        """Tell the coordinator that we are alive, and hear whether the group is being balanced anew. Also while it is:
        the caller may take its time to join."""
        if self.generation < 0 or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + HEARTBEAT_S
        if self.is_leader and self._has_grown():
            self.must_rejoin = True
            return
        request = HeartbeatRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
        )
        try:
            answer = self._call(ApiKey.HEARTBEAT, request, HeartbeatResponse, Deadline(self._session_s / 3))
            self._hear(error_code(answer.error_code))
        except KafkaError as error:
            if not error.code.retriable and error.code != ErrorCode.BROKER_NOT_AVAILABLE:
                raise
            self._lose_coordinator(error)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether they are committed; not if the group has gone on without us, which a new join mends."""
        if not offsets or self.generation < 0:
            return not offsets

        def ask(within: Deadline) -> bool:
            request, newest = commit_request(self._group, offsets, self.generation, self.member_id, self._instance_id)
            version = self._connection(within).version(ApiKey.OFFSET_COMMIT, newest=newest)
            answer = self._call(ApiKey.OFFSET_COMMIT, request, OffsetCommitResponse, within, version)
            for code in {part.error_code for topic in answer.topics for part in topic.partitions}:
                if code in OUTDATED:
                    self._hear(error_code(code))
                    return False
                if code == ErrorCode.REBALANCE_IN_PROGRESS:
                    self.must_rejoin = True
                    return False
                self._moved(error_code(code))
                check(code, None, f"committing the offsets of group {self._group!r}")
            return True

        return self._cluster.attempt(f"committing the offsets of group {self._group!r}", ask)

    def leave(self) -> None:
        """Tell the coordinator, so that the others need not wait for the session to end. Best effort. A static member
        says nothing: its partitions wait for it until the session ends."""
        if self.member_id and self._instance_id is None:
            self._say_goodbye()
        self.member_id, self.generation, self.must_rejoin = "", -1, True

    def _say_goodbye(self) -> None:
        try:
            within = Deadline(5.0)
            version = self._connection(within).version(ApiKey.LEAVE_GROUP)
            identity = MemberIdentity(member_id=self.member_id, reason="the consumer was closed")
            request = LeaveGroupRequest(
                group_id=self._group,
                member_id=self.member_id if version < LEAVES_BY_LIST else "",
                members=(identity,) if version >= LEAVES_BY_LIST else (),
            )
            self._call(ApiKey.LEAVE_GROUP, request, LeaveGroupResponse, within, version)
        except KafkaError:
            pass  # the session times out

    def _join_once(self, within: Deadline) -> list[TopicPartition]:
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=int(self._session_s * 1000),
            rebalance_timeout_ms=int(self._rebalance_s * 1000),
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocols=tuple(
                JoinGroupRequestProtocol(name=name, metadata=self._subscription(name)) for name in self._strategies
            ),
        )
        answer = self._call(ApiKey.JOIN_GROUP, request, JoinGroupResponse, within)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED and answer.member_id:
            self.member_id = answer.member_id
            answer = self._call(ApiKey.JOIN_GROUP, request.replace(member_id=self.member_id), JoinGroupResponse, within)
        code = error_code(answer.error_code)
        self._moved(code)
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self._group!r} has forgotten this member")
        check(answer.error_code, None, f"group {self._group!r}")
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.is_leader = answer.leader == answer.member_id
        return self._sync(answer, within)

    def _subscription(self, strategy: str) -> bytes:
        """The user data for the leader, in the format of the Java client of that strategy."""
        if strategy == STICKY:
            data = write_sticky(*self._last)
            return storage.encode(ConsumerProtocolSubscription(topics=self._topics, user_data=data), 0)
        if strategy == COOPERATIVE:
            data = write_generation(self._last[1])
            owned = wire_places(self._owned)
            told = ConsumerProtocolSubscription(topics=self._topics, user_data=data, owned_partitions=owned)
            return storage.encode(told, 1)
        return storage.encode(ConsumerProtocolSubscription(topics=self._topics), 0)

    def _sync(self, joined: JoinGroupResponse, within: Deadline) -> list[TopicPartition]:
        shares = self._assign(joined, within) if self.is_leader and not joined.skip_assignment else ()
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=shares,
        )
        answer = self._call(ApiKey.SYNC_GROUP, request, SyncGroupResponse, within)
        code = error_code(answer.error_code)
        self._moved(code)
        if code in (*OUTDATED, ErrorCode.REBALANCE_IN_PROGRESS):
            self.member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {self._group!r} is being balanced anew")
        check(answer.error_code, None, f"group {self._group!r}")
        return list(read_assignment(bytes(answer.assignment)))

    def _assign(self, joined: JoinGroupResponse, within: Deadline) -> tuple[SyncGroupRequestAssignment, ...]:
        assign = ASSIGNORS.get(joined.protocol_name or "")
        if assign is None:
            raise GarbledError(f"group {self._group!r} chose {joined.protocol_name!r}, which we did not offer")
        members = {
            member.member_id: read_member(joined.protocol_name or "", bytes(member.metadata), member.group_instance_id)
            for member in joined.members
        }
        wanted = {topic for member in members.values() for topic in member.topics}
        self._counts = self._count(sorted(wanted), within)
        return tuple(
            SyncGroupRequestAssignment(member_id=member, assignment=write_assignment(places))
            for member, places in assign(members, self._counts).items()
        )

    def _count(self, topics: Sequence[str], within: Deadline) -> dict[str, int]:
        found = self._cluster.metadata(topics, within) if topics else None
        return {} if found is None else {name: len(topic.partitions) for name, topic in found.topics.items()}

    def _has_grown(self) -> bool:
        """Whether a topic has come, gone or got more partitions since they were assigned."""
        try:
            return self._count(sorted({*self._counts, *self._topics}), Deadline(self._session_s / 3)) != self._counts
        except UnknownTopicError:
            return True
        except KafkaError:
            return False  # the heartbeat will tell

    def _hear(self, code: ErrorCode) -> None:
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.must_rejoin = True
        elif code in OUTDATED:
            self.member_id = "" if code == ErrorCode.UNKNOWN_MEMBER_ID else self.member_id
            self.generation, self.must_rejoin = -1, True
        elif code != ErrorCode.NONE:
            raise KafkaError(code, f"group {self._group!r}: {code.explanation}")

    def _moved(self, code: ErrorCode) -> None:
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._coordinator = None

    def _lose_coordinator(self, error: KafkaError) -> None:
        self._coordinator = None
        self._cluster.forget()
        if error.code in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.BROKER_NOT_AVAILABLE):
            self._next_s = time.monotonic() + HEARTBEAT_S / 3

    def _connection(self, within: Deadline) -> Connection:
        if self._coordinator is None or self._coordinator.closed:
            self._coordinator = group_coordinator(self._cluster, self._group, within)
        return self._coordinator

    def _call(self, api: ApiKey, request: Struct, kind: type[T], within: Deadline, version: int | None = None) -> T:
        return self._connection(within).call(api, request, kind, within, version)


def write_assignment(places: Sequence[TopicPartition]) -> bytes:
    return storage.encode(ConsumerProtocolAssignment(assigned_partitions=wire_places(places)), 0)


def wire_places(places: Sequence[TopicPartition]) -> tuple[consumer_protocol.TopicPartition, ...]:
    return tuple(
        consumer_protocol.TopicPartition(topic=topic, partitions=tuple(numbers))
        for topic, numbers in by_topic(places).items()
    )


def read_member(strategy: str, metadata: bytes, instance_id: str | None) -> Member:
    try:
        found = storage.decode(ConsumerProtocolSubscription, metadata)
    except DecodeError:
        return Member(frozenset(), instance_id=instance_id)  # a client's own format
    data = None if found.user_data is None else bytes(found.user_data)
    if strategy == STICKY:
        owned, generation = read_sticky(data)
    else:
        owned = tuple(
            TopicPartition(each.topic, number) for each in found.owned_partitions for number in each.partitions
        )
        generation = max(found.generation_id, read_generation(data))
    return Member(frozenset(found.topics), owned, generation, instance_id)
