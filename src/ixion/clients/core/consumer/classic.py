"""A member of a classic group: joins, takes part in rebalances, leaves.

A join has two halves. JoinGroup waits until all members have joined; the member that the coordinator names leader gets
the subscriptions of the others and assigns the partitions (`assignors`). SyncGroup carries its assignment to the
coordinator, and to each member its share. From then on the member has a generation: commits and heartbeats name it, and
the coordinator refuses an older one, so that a member that was removed cannot overwrite anything.

    IDLE --begin--> WAITING --JoinGroup--> JOINING --> ASSIGNING (the leader only) --SyncGroup--> SYNCING --> IDLE

An error on the way leads back to WAITING, with or without a member id. Heartbeats are sent in IDLE and WAITING: the
caller may take its time to poll again and join.

The coordinator may hold the answer to a join for the whole rebalance timeout. If its machine is lost meanwhile, no
answer comes, and nothing tells the connection. So a member asks again after request.timeout.ms, over a new connection
to the coordinator of that moment: a coordinator that still waits for others takes the repeated join in place of the
first, and one that has ended the round answers with its result. Only a join without a member id that the coordinator
would add as one more member (see `_hold_s`) waits for the whole time, as every join of Kafka's Java client does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ixion.clients.assignors import ASSIGNORS, COOPERATIVE, STICKY
from ixion.clients.assignors import Member as Told
from ixion.clients.assignors.sticky_data import read_generation, read_sticky, write_generation, write_sticky
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, ConnectionMachine
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.consumer.member import FENCED, Member, MemberCall
from ixion.clients.faults import GarbledError, error_code
from ixion.clients.metadata import TopicPartition, by_topic
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol import storage
from ixion.language.protocol.flaws import DecodeError
from ixion.language.protocol.messages.k11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.protocol.stored import consumer_protocol
from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

IDLE: Final = 0
WAITING: Final = 1
JOINING: Final = 2
ASSIGNING: Final = 3
SYNCING: Final = 4

SUBSCRIPTION: Final = 3  # versions of the embedded protocol, as Kafka's Java client writes them
ASSIGNMENT: Final = 3
LEAVES_BY_LIST: Final = 3  # the version of LeaveGroup from which it names several members
ID_GIVEN_FROM: Final = 4  # the version of JoinGroup from which a new member gets its id before it joins
INSTANCES_FROM: Final = {ApiKey.JOIN_GROUP: 5, ApiKey.SYNC_GROUP: 3, ApiKey.HEARTBEAT: 3}


class ClassicMember(Member):
    def __init__(
        self,
        client: Client,
        coordinator: Coordinator,
        *,
        instance_id: str | None,
        strategies: Sequence[str],
        session_s: float,
        rebalance_s: float,
        heartbeat_s: float,
        rack: str,
    ) -> None:
        super().__init__(client, coordinator, instance_id)
        self._rack = rack
        self.is_cooperative = set(strategies) == {COOPERATIVE}
        self.is_leader = False
        self.last: tuple[Sequence[TopicPartition], int] = ((), -1)  # the last assignment, and its generation
        self._state = IDLE
        self._strategies = tuple(strategies)
        self._session_s = session_s
        self._rebalance_s = rebalance_s
        self._heartbeat_s = heartbeat_s
        self._owned: tuple[TopicPartition, ...] = ()  # what the consumer still reads while it joins
        self._joined: JoinGroupResponse | None = None  # while the leader assigns
        self._counts: dict[str, int] = {}  # partitions that the leader has assigned, by topic
        self._placed: dict[TopicPartition, frozenset[str]] = {}  # their racks, if the leader has one itself
        self._changes = 0  # of the cluster, as last looked at
        self._farewell: tuple[str, str] | None = None  # a member id that must leave, and the reason

    def begin(self, owned: Sequence[TopicPartition]) -> None:
        self.is_joining = True
        self.must_rejoin = False
        self.has_lost = False
        self.assignment = None
        self._owned = tuple(owned)
        self._state = WAITING

    def taken_over(self, owned: Sequence[TopicPartition], now_s: float) -> None:
        pass  # the coordinator of a classic group does not ask

    @property
    def leader_topics(self) -> list[str]:
        """Topics that the leader needs metadata of, besides its own subscription."""
        if self._joined is not None:
            return sorted({topic for told in self._members(self._joined).values() for topic in told.topics})
        return sorted(self._counts)

    def tick(self, now_s: float) -> None:
        self._wake_s = NEVER
        self._look_at_topics()
        if self._asked is not None:
            return
        if self._state == ASSIGNING:
            self._assign(now_s)
            return
        is_beating = self.generation >= 0 and now_s >= self._next_s
        if self._farewell is None and self._state != WAITING and not is_beating:
            self._wake_s = self._next_s if self.generation >= 0 else NEVER
            return
        if now_s < self.not_before_s:
            self._wake_s = self.not_before_s
            return
        machine = self.coordinator.ready(now_s)
        if machine is None:
            self._wake_s = self.coordinator.wake_s
            self._hear_of_coordinator(now_s)
            return
        try:
            if self._farewell is not None:
                self._take_leave(machine, now_s)
            elif self._state == WAITING:
                self._join(machine, now_s)
            else:
                self._beat(machine, now_s)
        except KafkaError as fault:  # a version that the coordinator does not speak
            self.fault = fault
            self._farewell = None
            self.is_leaving = False
            self.pause(now_s)

    def leave(self, now_s: float, reason: str, *, says_so: bool | None = None) -> None:
        if self.member_id and (self.instance_id is None if says_so is None else says_so):
            self._farewell = (self.member_id, reason)
            self.is_leaving = True
            if self._asked is not None and self._state in (JOINING, SYNCING):
                self.coordinator.hang_up(now_s)
        self.member_id = ""
        self._state = IDLE
        self._asked = None
        self._joined = None
        self.lose()
        self.not_before_s = now_s

    def lose(self) -> None:
        super().lose()
        if self._state in (JOINING, ASSIGNING, SYNCING, WAITING):
            self._state = WAITING
            self.is_joining = True
            self.must_rejoin = False

    def hear(self, code: ErrorCode, now_s: float) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        super().hear(code, now_s)

    def unanswered(self, kind: str, now_s: float) -> None:
        if kind == "leave":
            self._farewell = None  # the session times out
            self.is_leaving = False
        elif kind in ("join", "sync"):
            self._state = WAITING
        self.pause(now_s)

    def take(self, kind: str, answer: Struct, now_s: float) -> None:
        if kind == "leave":
            self._farewell = None
            self.is_leaving = False
        elif isinstance(answer, HeartbeatResponse):
            self._next_s = now_s + self._heartbeat_s
            if answer.error_code == 0:
                self.failures = 0
            self.hear(error_code(answer.error_code), now_s)
        elif isinstance(answer, JoinGroupResponse):
            self._take_join(answer, now_s)
        else:
            assert isinstance(answer, SyncGroupResponse)
            self._take_sync(answer, now_s)

    def _take_join(self, answer: JoinGroupResponse, now_s: float) -> None:
        self._state = WAITING
        code = error_code(answer.error_code)
        if code == ErrorCode.MEMBER_ID_REQUIRED and answer.member_id:
            self.member_id = answer.member_id
        elif code != ErrorCode.NONE:
            if code in FENCED:
                self.generation = -1
            if code in FENCED or code == ErrorCode.REBALANCE_IN_PROGRESS:
                self.pause(now_s)
            self.hear(code, now_s)
        else:
            self.failures = 0
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.is_leader = answer.leader == answer.member_id
            self._joined = answer
            self._state = ASSIGNING

    def _take_sync(self, answer: SyncGroupResponse, now_s: float) -> None:
        code = error_code(answer.error_code)
        if code != ErrorCode.NONE:
            self._state = WAITING
            self.hear(code, now_s)
            self.must_rejoin = False  # it is joining already
            return
        places = sorted(read_assignment(bytes(answer.assignment)))
        self._state = IDLE
        self.is_joining = False
        self.failures = 0
        self.has_lost = False
        self.assignment = places
        self.last = places, self.generation
        self._next_s = now_s + self._heartbeat_s

    def _join(self, machine: ConnectionMachine, now_s: float) -> None:
        version = machine.version(ApiKey.JOIN_GROUP)
        protocols = [
            JoinGroupRequestProtocol(name=name, metadata=self._subscription(name)) for name in self._strategies
        ]
        request = JoinGroupRequest(
            group_id=self.coordinator.group,
            session_timeout_ms=int(self._session_s * 1000),
            rebalance_timeout_ms=int(self._rebalance_s * 1000),
            member_id=self.member_id,
            group_instance_id=self._instance(ApiKey.JOIN_GROUP, version),
            protocol_type="consumer",
            protocols=tuple(protocols),
        )
        self._state = JOINING
        self._ask("join", machine, ApiKey.JOIN_GROUP, version, request, now_s, self._hold_s(version))

    def _hold_s(self, version: int) -> float:
        """How long the coordinator may hold a join beyond request.timeout.ms."""
        repeatable = self.member_id or (version >= ID_GIVEN_FROM and self.instance_id is None)
        return 0.0 if repeatable else self._rebalance_s + 5.0

    def _assign(self, now_s: float) -> None:
        """Send SyncGroup; the leader decides first, once it knows all topics that members subscribe to."""
        joined = self._joined
        assert joined is not None
        machine = self.coordinator.ready(now_s)
        if machine is None:
            self._state = WAITING
            self._joined = None
            self._wake_s = now_s
            return
        shares: tuple[SyncGroupRequestAssignment, ...] = ()
        try:
            if self.is_leader:
                counts = self._count(self.leader_topics, now_s)
                if counts is None:
                    return  # metadata is being requested
                if not joined.skip_assignment:
                    shares = self._share_out(joined, counts)
                self._counts = counts
                self._placed = self._racks(counts) if self._rack else {}
            version = machine.version(ApiKey.SYNC_GROUP)
        except KafkaError as fault:
            self.fault = fault
            self._state = WAITING
            self._joined = None
            self.pause(now_s)
            return
        request = SyncGroupRequest(
            group_id=self.coordinator.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance(ApiKey.SYNC_GROUP, version),
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=shares,
        )
        self._state = SYNCING
        self._joined = None
        self._ask("sync", machine, ApiKey.SYNC_GROUP, version, request, now_s)

    def _beat(self, machine: ConnectionMachine, now_s: float) -> None:
        version = machine.version(ApiKey.HEARTBEAT)
        request = HeartbeatRequest(
            group_id=self.coordinator.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance(ApiKey.HEARTBEAT, version),
        )
        self._ask("heartbeat", machine, ApiKey.HEARTBEAT, version, request, now_s)

    def _take_leave(self, machine: ConnectionMachine, now_s: float) -> None:
        assert self._farewell is not None
        member_id, reason = self._farewell
        version = machine.version(ApiKey.LEAVE_GROUP)
        identity = MemberIdentity(member_id=member_id, group_instance_id=self.instance_id, reason=reason)
        request = LeaveGroupRequest(
            group_id=self.coordinator.group,
            member_id=member_id if version < LEAVES_BY_LIST else "",
            members=(identity,) if version >= LEAVES_BY_LIST else (),
        )
        self._ask("leave", machine, ApiKey.LEAVE_GROUP, version, request, now_s)

    def _ask(
        self,
        kind: str,
        machine: ConnectionMachine,
        api: ApiKey,
        version: int,
        request: Struct,
        now_s: float,
        held_s: float = 0.0,
    ) -> None:
        self._asked = MemberCall(self, kind)
        machine.send(api, version, request, self._asked, now_s, held_s=held_s)

    def _instance(self, api: ApiKey, version: int) -> str | None:
        return self.instance_id if version >= INSTANCES_FROM[api] else None

    def _subscription(self, strategy: str) -> bytes:
        """The subscription for one strategy, with user data in the Java client's format."""
        data: bytes | None = None
        if strategy == STICKY and self.last[1] >= 0:
            data = write_sticky(*self.last)
        elif strategy == COOPERATIVE:
            data = write_generation(self.last[1])
        told = ConsumerProtocolSubscription(
            topics=tuple(sorted(self.topics)),
            user_data=data,
            owned_partitions=wire_places(sorted(self._owned)),
            generation_id=self.generation,
            rack_id=self._rack or None,
        )
        return storage.encode(told, SUBSCRIPTION)

    def _members(self, joined: JoinGroupResponse) -> dict[str, Told]:
        name = joined.protocol_name or ""
        return {
            member.member_id: read_member(name, bytes(member.metadata), member.group_instance_id)
            for member in joined.members
        }

    def _count(self, topics: Sequence[str], now_s: float) -> dict[str, int] | None:
        """The number of partitions of each existing topic; None while that is not known."""
        cluster = self.client.cluster
        is_known = True
        counts: dict[str, int] = {}
        for name in topics:
            try:
                topic = cluster.want(name, now_s)
            except KafkaError:
                continue
            if topic is not None:
                counts[name] = len(topic.partitions)
            elif not cluster.reason(name):
                is_known = False
        return counts if is_known else None

    def _share_out(self, joined: JoinGroupResponse, counts: dict[str, int]) -> tuple[SyncGroupRequestAssignment, ...]:
        assign = ASSIGNORS.get(joined.protocol_name or "")
        if assign is None:
            group = self.coordinator.group
            raise GarbledError(f"group {group!r} chose {joined.protocol_name!r}, which we did not offer")
        return tuple(
            [
                SyncGroupRequestAssignment(member_id=member, assignment=write_assignment(places))
                for member, places in assign(self._members(joined), counts, self._racks(counts)).items()
            ]
        )

    def _racks(self, topics: Iterable[str]) -> dict[TopicPartition, frozenset[str]]:
        """The racks of the replicas of each partition, as far as brokers name them."""
        cluster = self.client.cluster
        racks = {node_id: node.rack for node_id, node in cluster.nodes.items() if node.rack is not None}
        if not racks:
            return {}
        return {
            TopicPartition(name, partition.number): frozenset(
                racks[each] for each in partition.replicas if each in racks
            )
            for name in topics
            if name in cluster.topics
            for partition in cluster.topics[name].partitions
        }

    def _look_at_topics(self) -> None:
        """Ask for a rebalance, as the leader, when a topic was created, deleted or grown, or its replicas are in other
        racks (KIP-881)."""
        cluster = self.client.cluster
        if not self.is_leader or self._state != IDLE or self.generation < 0 or cluster.changes == self._changes:
            return
        self._changes = cluster.changes
        for name in {*self._counts, *self.topics}:
            topic = cluster.topics.get(name)
            if topic is None and not cluster.reason(name):
                continue  # not requested yet
            if (0 if topic is None else len(topic.partitions)) != self._counts.get(name, 0):
                self.must_rejoin = True
        if self._rack and self._racks(self._counts) != self._placed:
            self.must_rejoin = True

    def _hear_of_coordinator(self, now_s: float) -> None:
        if self._farewell is not None and self.coordinator.fault is not None:
            self._farewell = None
            self.is_leaving = False
        elif self.coordinator.fault is not None:
            self.fault = self.coordinator.fault
            self.coordinator.fault = None
            self.pause(now_s)


def read_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions that the leader assigned to a member; none if it is not a consumer's format."""
    if not data:
        return []
    try:
        assignment = storage.decode(ConsumerProtocolAssignment, data)
    except DecodeError:
        return []
    return [
        TopicPartition(topic.topic, number) for topic in assignment.assigned_partitions for number in topic.partitions
    ]


def write_assignment(places: Sequence[TopicPartition]) -> bytes:
    return storage.encode(ConsumerProtocolAssignment(assigned_partitions=wire_places(places)), ASSIGNMENT)


def wire_places(places: Sequence[TopicPartition]) -> tuple[consumer_protocol.TopicPartition, ...]:
    return tuple(
        [
            consumer_protocol.TopicPartition(topic=topic, partitions=tuple(numbers))
            for topic, numbers in by_topic(places).items()
        ]
    )


def read_member(strategy: str, metadata: bytes, instance_id: str | None) -> Told:
    try:
        found = storage.decode(ConsumerProtocolSubscription, metadata)
    except DecodeError:
        return Told(frozenset(), instance_id=instance_id)  # not a consumer's format
    data = None if found.user_data is None else bytes(found.user_data)
    rack, field = found.rack_id or "", max(found.generation_id, -1)
    if strategy == STICKY:
        previous, generation = read_sticky(data)
        return Told(frozenset(found.topics), previous, generation, instance_id, rack, field)
    owned = [TopicPartition(each.topic, number) for each in found.owned_partitions for number in each.partitions]
    generation = field if field >= 0 else read_generation(data)
    return Told(frozenset(found.topics), tuple(owned), generation, instance_id, rack, field)
