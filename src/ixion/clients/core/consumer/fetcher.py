"""Fetches assigned partitions, from leaders or the replicas that they name, ahead of the caller.

Each broker has at most one fetch in flight. A partition is fetched while less of it is buffered than two fetches may
bring (`max.partition.fetch.bytes` each), and less of everything than `fetch.max.bytes`, not counting paused partitions.
So the buffer is bounded by `fetch.max.bytes`, one fetch for each broker and two for each paused partition. A partition
is not fetched while it is paused or being revoked, has no position, or its position must first be compared with a new
leader's log (KIP-320).

Answers about a partition, lettered:
A  records: they go to the buffer
B  read from another replica (KIP-392): fetch from that one until the metadata is refreshed
C  the offset does not exist: at a follower, ask the leader; at the leader, reset the position once the buffered records
   have been returned
D  a retriable error: again after a pause, with fresh metadata if that is stale. A leader that the answer names
   is asked at once (KIP-951)
E  any other error: raised to the caller, and again after a pause
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion._native import i64
from ixion.clients.address import Address
from ixion.clients.core.client import Client
from ixion.clients.core.connection import NEVER, ConnectionMachine, Outcome, Pending
from ixion.clients.core.consumer.buffer import Buffer
from ixion.clients.core.consumer.errand import node_wake_s
from ixion.clients.core.consumer.lookups import leader_of, passes
from ixion.clients.core.consumer.session import SESSIONS_FROM, FetchSession, Wanted, names_by_id
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.core.consumer.subscription import Assigned, Subscription
from ixion.clients.core.consumer.validation import Validation, comparison
from ixion.clients.faults import error_code
from ixion.clients.fetched import Fetched
from ixion.clients.metadata import Node, Partition, TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.codec.sink import Deferred
from ixion.language.protocol.messages.k01_fetch import FetchRequest, FetchResponse, PartitionData
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batches import iter_complete_batches

LAST_BY_NAME: Final = 12  # later versions of Fetch name topics by id only
AHEAD: Final = 2  # fetches of a partition that may wait here
EPOCHS_FROM: Final = 3  # the first version of OffsetForLeaderEpoch that consumers may ask


class Fetcher:
    def __init__(
        self,
        client: Client,
        subscription: Subscription,
        buffer: Buffer,
        settings: ConsumerSettings,
        tell: Callable[[KafkaError], None],
    ) -> None:
        """`tell` takes faults that the caller must see."""
        self.requests = 0
        self.trouble: KafkaError | None = None  # why nothing comes at the moment
        self._client = client
        self._subscription = subscription
        self._buffer = buffer
        self._tell = tell
        self._read_committed = settings.isolation_level == "read_committed"
        self._max_wait_ms = settings.fetch_max_wait_ms
        self._min_bytes = settings.fetch_min_bytes
        self._most_bytes: i64 = settings.fetch_max_bytes
        self._partition_bytes: i64 = settings.max_partition_fetch_bytes
        self._rack = settings.client_rack
        self._sessions: dict[int, FetchSession] = {}  # by node id
        self._turn = 0
        self._wake_s = NEVER

    @property
    def wake_s(self) -> float:
        return self._wake_s

    def tick(self, now_s: float) -> None:
        """Send all the fetches that can be sent now (steps 8 and 14)."""
        self._wake_s = NEVER
        if self._buffer.bytes >= self._most_bytes and self._buffer.bytes - self._held_bytes() >= self._most_bytes:
            return  # step 11.10: the buffer is full, and nothing waits to be sent
        wanted: dict[int, list[tuple[Assigned, Partition]]] = {}
        doubted: dict[int, list[tuple[Assigned, Partition]]] = {}
        for state in self._in_turn():
            if (
                state.is_flying
                or state.is_held
                or state.position is None
                or state.out_of_range
                or state.truncated_to is not None
                or state.buffered_bytes >= AHEAD * self._partition_bytes
            ):
                continue
            if now_s < state.not_before_s:
                self._wake_s = min(self._wake_s, state.not_before_s)
                continue
            partition = self._leader(state, now_s)
            if partition is None:
                continue
            if state.must_check(partition.leader_epoch):
                doubted.setdefault(partition.leader, []).append((state, partition))
            else:
                wanted.setdefault(self._replica(state, partition, now_s), []).append((state, partition))
        for node_id, asked in doubted.items():
            machine = self._ready(node_id, now_s)
            if machine is not None:
                self._compare(machine, asked, now_s)
        for node_id, places in wanted.items():
            session = self._sessions.get(node_id)
            if session is None:
                session = self._sessions[node_id] = FetchSession()
            if not session.is_flying:
                machine = self._ready(node_id, now_s)
                if machine is not None:
                    self._fetch(machine, node_id, session, places, now_s)

    def forget_questions(self) -> None:
        """Forget fetches in flight: all connections are closed."""
        for session in self._sessions.values():
            session.is_flying = False
            session.fail()
        for state in self._subscription.assigned.values():
            state.is_flying = False

    @property
    def is_flying(self) -> bool:
        return any(session.is_flying for session in self._sessions.values())

    def _held_bytes(self) -> i64:
        """What the buffer has of paused partitions: nobody takes it out, so it must not take the room of the others."""
        held: i64 = 0
        for state in self._subscription.assigned.values():
            if state.is_held:
                held += state.buffered_bytes
        return held

    def _in_turn(self) -> list[Assigned]:
        """Rotate the partitions, because a broker fills its answer from the front."""
        states = list(self._subscription.assigned.values())
        if len(states) > 1:
            self._turn = (self._turn + 1) % len(states)
            return states[self._turn :] + states[: self._turn]
        return states

    def _leader(self, state: Assigned, now_s: float) -> Partition | None:
        try:
            partition = leader_of(self._client, state.place, now_s)
        except KafkaError as fault:
            self._fault(state, fault, now_s)
            return None
        if partition is None and state.place.topic in self._client.cluster.topics:
            text = f"{state.place} has no leader at the moment"
            self.trouble = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, text)
        return partition

    def _replica(self, state: Assigned, partition: Partition, now_s: float) -> int:
        if state.replica >= 0:
            if now_s < state.replica_until_s and state.replica in self._client.cluster.nodes:
                return state.replica
            state.replica = -1
        return partition.leader

    def _ready(self, node_id: int, now_s: float) -> ConnectionMachine | None:
        machine = self._client.ready(node_id, now_s)
        if machine is None:
            self._wake_s = min(self._wake_s, node_wake_s(self._client, node_id, now_s))
            if self._client.fault is not None:
                self.trouble = self._client.fault
            return None
        if now_s < machine.throttled_until_s:
            self._wake_s = min(self._wake_s, machine.throttled_until_s)
            return None
        return machine

    def _fetch(
        self,
        machine: ConnectionMachine,
        node_id: int,
        session: FetchSession,
        places: list[tuple[Assigned, Partition]],
        now_s: float,
    ) -> None:
        topics = self._client.cluster.topics
        wanted: dict[TopicPartition, Wanted] = {}
        flight = Flight(self, node_id, session)
        has_ids = True
        for state, partition in places:
            topic_id = topics[state.place.topic].topic_id
            has_ids = has_ids and topic_id != ZERO_ID
            offset = int(state.fetch_offset)
            wanted[state.place] = Wanted(topic_id, offset, partition.leader_epoch, int(self._partition_bytes))
            flight.asked[state.place] = (state, state.version, offset)
            flight.is_from_leader[state.place] = node_id == partition.leader
        try:
            version = machine.version(ApiKey.FETCH, newest=ApiKey.FETCH.newest if has_ids else LAST_BY_NAME)
        except KafkaError as fault:
            for state, _ in places:
                self._fault(state, fault, now_s)
            return
        flight.names = names_by_id(wanted.items())
        uses_ids = version > LAST_BY_NAME
        named, gone = session.next(wanted, uses_ids=uses_ids)
        has_session = version >= SESSIONS_FROM
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=int(self._most_bytes),
            isolation_level=int(self._read_committed),
            session_id=session.session_id if has_session else 0,
            session_epoch=session.epoch if has_session else -1,
            topics=named,
            forgotten_topics_data=gone,
            rack_id=self._rack,
        )
        session.is_flying = True
        for state, _ in places:
            state.is_flying = True
        self.requests += 1
        machine.send(ApiKey.FETCH, version, request, flight, now_s, held_s=self._max_wait_ms / 1000)

    def landed(self, flight: Flight, outcome: Outcome, now_s: float) -> None:
        """Handle the outcome of a fetch."""
        session = flight.session
        session.is_flying = False
        for state, version, _ in flight.asked.values():
            if state.version == version:
                state.is_flying = False
        if not isinstance(outcome, FetchResponse):
            session.fail()
            if isinstance(outcome, KafkaError):
                self.trouble = outcome
            for state, _, _ in flight.asked.values():
                if state.replica == flight.node_id:
                    state.replica = -1
            return
        code = error_code(outcome.error_code)
        session.answered(code, outcome.session_id)
        if code != ErrorCode.NONE:
            for state, version, _ in flight.asked.values():
                if state.version == version:
                    self._fault(state, KafkaError(code, f"a fetch: {code.explanation}"), now_s)
            return
        nodes = {
            end.node_id: Node(end.node_id, Address(end.host, end.port), end.rack) for end in outcome.node_endpoints
        }
        for topic in outcome.responses:
            name = topic.topic or flight.names.get(topic.topic_id, "")
            for data in topic.partitions:
                place = TopicPartition(name, data.partition_index)
                asked = flight.asked.pop(place, None)
                if asked is None:
                    continue
                state, version, offset = asked
                # Ignore the answer for a partition that was revoked or moved to another position meanwhile.
                if self._subscription.assigned.get(place) is state and state.version == version:
                    self._take(state, offset, data, flight.is_from_leader[place], nodes, now_s)

    def _take(
        self,
        state: Assigned,
        offset: int,
        data: PartitionData,
        is_from_leader: bool,
        nodes: dict[int, Node],
        now_s: float,
    ) -> None:
        code = error_code(data.error_code)
        if code == ErrorCode.NONE:
            self._keep(state, offset, data, now_s)  # A, B
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:  # C
            if is_from_leader:
                state.out_of_range = True
            else:
                state.replica = -1
        else:
            state.replica = -1
            leader = data.current_leader
            hinted = leader.leader_id >= 0 and self._client.cluster.hint(
                state.place, leader.leader_id, leader.leader_epoch, nodes
            )
            if not hinted:
                self._fault(state, KafkaError(code, f"{state.place}: {code.explanation}"), now_s)  # D, E

    def _keep(self, state: Assigned, offset: int, data: PartitionData, now_s: float) -> None:
        records = data.records
        assert not isinstance(records, Deferred)  # only a broker defers records
        if data.preferred_read_replica >= 0:
            state.replica = data.preferred_read_replica
            state.replica_until_s = now_s + self._client.settings.metadata_max_age_s
        try:
            batches = list(iter_complete_batches(records or b""))
        except KafkaError as fault:
            self._fault(state, KafkaError(fault.code, f"{state.place}: {fault.message}"), now_s)
            return
        state.failures = 0
        self.trouble = None
        if batches and batches[-1].next_offset > offset:
            end_offset = data.last_stable_offset if self._read_committed else data.high_watermark
            aborted = (data.aborted_transactions or ()) if self._read_committed else None
            self._buffer.add(Fetched(state.place, offset, batches, end_offset, aborted))

    def _fault(self, state: Assigned, fault: KafkaError, now_s: float) -> None:
        self.trouble = fault
        state.failures += 1
        state.not_before_s = now_s + self._client.retry.pause_s(state.failures)
        self._wake_s = min(self._wake_s, state.not_before_s)
        if fault.code.stale_metadata:
            self._client.cluster.mark_stale()
        if not passes(fault):
            self._tell(fault)

    def _compare(self, machine: ConnectionMachine, asked: list[tuple[Assigned, Partition]], now_s: float) -> None:
        """Ask where the epoch of our last record ends in the leader's log."""
        try:
            version = machine.version(ApiKey.OFFSET_FOR_LEADER_EPOCH, oldest=EPOCHS_FROM)
        except KafkaError:
            for state, partition in asked:
                state.checked_epoch = partition.leader_epoch  # a broker that cannot tell
            self._wake_s = now_s
            return
        validation = Validation(self._compared, asked)
        for state, _ in asked:
            state.is_flying = True
        machine.send(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, comparison(asked), validation, now_s)

    def _compared(self, state: Assigned, leader_epoch: int, code: ErrorCode, end_offset: int, now_s: float) -> None:
        if self._subscription.assigned.get(state.place) is not state:
            return
        if code != ErrorCode.NONE:
            self._fault(state, KafkaError(code, f"{state.place}: {code.explanation}"), now_s)
        elif end_offset < 0:
            state.out_of_range = True  # the leader has nothing of the epoch that was read, nor of one before it
        elif end_offset < state.fetch_offset:
            state.truncated_to = end_offset
        else:
            state.checked_epoch = leader_epoch


class Flight(Pending):
    """A fetch under way."""

    def __init__(self, fetcher: Fetcher, node_id: int, session: FetchSession) -> None:
        self.node_id = node_id
        self.session = session
        self.asked: dict[TopicPartition, tuple[Assigned, int, int]] = {}  # with version and offset
        self.is_from_leader: dict[TopicPartition, bool] = {}
        self.names: dict[bytes, str] = {}
        self._fetcher = fetcher

    def complete(self, outcome: Outcome, now_s: float) -> None:
        self._fetcher.landed(self, outcome, now_s)
