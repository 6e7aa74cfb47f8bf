"""A cluster with share groups in virtual time: brokers lock records, count deliveries, and check every request.

What they refuse is what Apache Kafka 4.3 was seen to refuse: a session at another epoch, acknowledgements of records
that are not locked for that member, and with one of them all others of the partition. They also forget sessions, fail
to store states, move leaders, and lose answers. `stored` has what came to an end; each record can get there once.
"""

from __future__ import annotations

from typing import NamedTuple

from ixion.clients.address import Address
from ixion.clients.core.share.acknowledgement import ACCEPT, GAP, REJECT, RELEASE, RENEW, Acknowledgement
from ixion.clients.core.share.machine import ShareMachine
from ixion.clients.core.share.settings import ShareSettings
from ixion.clients.metadata import TopicPartition
from ixion.clients.share.record import ShareRecord
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.messages import k79_share_acknowledge as k79
from ixion.language.protocol.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k76_share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batch import BatchView
from tests.clients.core.consumer_sim import TOPIC, TOPIC_ID, ConsumerSimulation, Wire
from tests.clients.core.sim_group import SPOKEN_BY_GROUPS, Reply, SimCoordinator
from tests.clients.fake import SPOKEN

SHARE_APIS = (
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
)
BEAT_MS = 1000
LOCK_S = 10.0
DELIVERIES = 1000  # the limit; high, so that nothing is archived because of a lossy network
LIES = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
NOT_STORED = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

Key = tuple[str, int]  # member and node


class Slot:
    """One record of a share partition."""

    def __init__(self) -> None:
        self.owner: Key | None = None  # member and broker of the lock
        self.until_s = 0.0
        self.deliveries = 0
        self.end = -1  # ACCEPT, REJECT or GAP, once it is over
        self.due_s = 0.0  # after a release with a delay


class Session:
    def __init__(self, wire: Wire) -> None:
        self.epoch = 1
        self.wire = wire
        self.places: set[int] = set()


class Stored(NamedTuple):
    offset: int
    kind: int


class ShareCoordinator(SimCoordinator):
    """Assigns every partition to every member."""

    def __init__(self, sim: ConsumerSimulation) -> None:
        super().__init__(sim)
        self.epochs: dict[str, int] = {}
        self.refuses: ErrorCode | None = None

    def answer(self, request: Struct, reply: Reply) -> None:
        if isinstance(request, ShareGroupHeartbeatRequest):
            reply(self._beat(request))
        else:
            super().answer(request, reply)

    def _beat(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        name, epoch = request.member_id, request.member_epoch
        said = ShareGroupHeartbeatResponse(
            error_code=0, member_id=name, member_epoch=epoch, heartbeat_interval_ms=BEAT_MS
        )
        if self.refuses is not None:
            return said.replace(error_code=self.refuses)
        if epoch < 0:
            self.epochs.pop(name, None)
            return said
        if self.sim.choose.random() < self.sim.trouble / 4:
            return said.replace(error_code=self.sim.choose.choice(LIES))
        if self.sim.choose.random() < self.sim.trouble / 20:
            self.epochs.pop(name, None)
        if epoch == 0:
            self.epochs[name] = self.epochs.get(name, 0) + 1
        elif self.epochs.get(name) != epoch:
            return said.replace(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        every = TopicPartitions(topic_id=TOPIC_ID, partitions=tuple(range(len(self.sim.logs))))
        return said.replace(member_epoch=self.epochs[name], assignment=Assignment(topic_partitions=(every,)))


class ShareSimulation(ConsumerSimulation):
    def __init__(self, seed: int, *, nodes: int = 3, partitions: int = 2, trouble: float = 0.25) -> None:
        super().__init__(seed, nodes=nodes, partitions=partitions, trouble=trouble)
        self.coordinator = ShareCoordinator(self)
        self.group = self.coordinator
        self.slots: list[dict[int, Slot]] = [{} for _ in range(partitions)]
        self.sessions: dict[Key, Session] = {}
        self.stored: list[list[Stored]] = [[] for _ in range(partitions)]
        self.fetched: list[k78.ShareFetchRequest] = []
        self.acknowledged: list[k79.ShareAcknowledgeRequest] = []
        self.lock_s = LOCK_S
        self.apis = [*SPOKEN, *SPOKEN_BY_GROUPS, *SHARE_APIS]

    def member(self, settings: ShareSettings | None = None) -> ShareMachine:
        machine = ShareMachine(
            [Address("node-0", 9092)], "g", settings or ShareSettings(), self.choose.random, self.now_s
        )
        name = f"member-{len(self.machines)}"  # the same in every run
        machine.member.member_id = name
        machine.fetcher._member_id = name
        self.machines.append(machine)
        machine.subscribe([TOPIC], self.now_s)
        return machine

    def take(self, machine: ShareMachine, seconds: float = 0.0, most: int = 7) -> list[ShareRecord]:
        """What a face does within poll."""
        end_s = self.now_s + seconds
        machine.enter(most, end_s, self.now_s)
        try:
            for _ in range(10_000):
                found = machine.take(most, self.now_s)
                if found:
                    return found
                machine.check()
                if self.now_s >= end_s and not machine.has_news:
                    return []
                self.run(end_s - self.now_s, lambda: machine.has_news)
                if self.now_s >= end_s and not machine.has_news:
                    return machine.take(most, self.now_s)
            raise AssertionError("there is news without end")
        except KafkaError as fault:
            self.faults.append(fault)
            return []
        finally:
            machine.exit(self.now_s)

    def decide(self, machine: ShareMachine, record: ShareRecord, kind: int, delay_ms: int = 0) -> Acknowledgement:
        result = Acknowledgement(TopicPartition(record.topic, record.partition), record.offset, kind)
        machine.acknowledge(record, result, delay_ms, self.now_s)
        return result

    def wait(self, machine: ShareMachine, seconds: float = 1000.0) -> None:
        """As `commit` does."""
        machine.hurry(self.now_s)
        self.run(seconds, lambda: not machine.has_unsettled)
        machine.relax()
        assert not machine.has_unsettled, "an acknowledgement has no outcome"

    def close(self, machine: ShareMachine, seconds: float = 30.0, *, accepts: bool = True) -> None:
        machine.begin_to_close(self.now_s, accepts)
        self.run(seconds, lambda: not machine.is_closing)
        machine.close(self.now_s)
        self.machines.remove(machine)
        assert not machine.has_unsettled, "an acknowledgement has no outcome"

    def ends(self, partition: int = 0) -> dict[int, int]:
        """How the records ended that have."""
        return {offset: slot.end for offset, slot in self.slots[partition].items() if slot.end >= 0}

    # The brokers

    def wait_of(self, request: Struct) -> float:
        if isinstance(request, k78.ShareFetchRequest) and not self._available(request):
            return request.max_wait_ms / 1000
        return super().wait_of(request)

    def faults_of(self, api: ApiKey) -> list[str]:
        if api in (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE):
            return ["session", "limit", "not stored", "move", "expire"] * 2
        return super().faults_of(api)

    def answer_on(self, wire: Wire, request: Struct, fault: str) -> Struct:
        self._notice()
        if isinstance(request, ApiVersionsRequest):
            entries = [ApiVersion(api_key=api, min_version=api.oldest, max_version=api.newest) for api in self.apis]
            return ApiVersionsResponse(error_code=0, api_keys=tuple(entries))
        if isinstance(request, k78.ShareFetchRequest):
            self.fetched.append(request)
            return self._share_fetch(wire, request, fault)
        if isinstance(request, k79.ShareAcknowledgeRequest):
            self.acknowledged.append(request)
            return self._acknowledge(wire, request, fault)
        return super().answer_on(wire, request, fault)

    def _notice(self) -> None:
        """Locks that have ended, and connections."""
        for key, session in list(self.sessions.items()):
            if not session.wire.is_open or session.wire.machine.closed:
                self._end(key)
        for slots in self.slots:
            for slot in slots.values():
                if slot.owner is not None and self.now_s >= slot.until_s:
                    slot.owner = None

    def _end(self, key: Key) -> None:
        self.sessions.pop(key, None)
        for slots in self.slots:
            for slot in slots.values():
                if slot.owner == key:
                    slot.owner = None

    def _session(self, wire: Wire, key: Key, epoch: int, fault: str, *, may_open: bool) -> ErrorCode:
        if fault == "session":
            self._end(key)
        if fault == "limit" and epoch == 0:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        if epoch == 0:
            if not may_open:
                return ErrorCode.INVALID_SHARE_SESSION_EPOCH
            self._end(key)
            self.sessions[key] = Session(wire)
            return ErrorCode.NONE
        session = self.sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch > 0 and session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch += 1
        return ErrorCode.NONE

    def _available(self, request: k78.ShareFetchRequest) -> bool:
        return any(
            slot.owner is None and slot.end < 0 and slot.due_s <= self.now_s
            for number in range(len(self.logs))
            for slot in self._all(number).values()
        )

    def _all(self, partition: int) -> dict[int, Slot]:
        slots = self.slots[partition]
        for offset in self.logs[partition].offsets:
            slots.setdefault(offset, Slot())
        return slots

    def _share_fetch(self, wire: Wire, request: k78.ShareFetchRequest, fault: str) -> k78.ShareFetchResponse:
        key = (request.member_id or "", wire.node)
        epoch = request.share_session_epoch
        batches = {
            part.partition_index: part.acknowledgement_batches for topic in request.topics for part in topic.partitions
        }
        if epoch == 0 and any(batches.values()):
            code = ErrorCode.INVALID_REQUEST
        else:
            code = self._session(wire, key, epoch, fault, may_open=True)
        if code != ErrorCode.NONE:
            return k78.ShareFetchResponse(
                error_code=code, acquisition_lock_timeout_ms=0, responses=(), node_endpoints=()
            )
        session = self.sessions[key]
        session.places |= set(batches)
        session.places -= {number for topic in request.forgotten_topics_data for number in topic.partitions}
        results = []
        left = request.max_records
        for number in sorted(session.places | set(batches)):
            if fault == "move":
                self.move(number)
            acked = self._settle_batches(key, number, batches.get(number, ()), fault, renews=request.is_renew_ack)
            data = k78.PartitionData(
                partition_index=number,
                error_code=0,
                acknowledge_error_code=acked,
                current_leader=k78.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
                records=b"",
                acquired_records=(),
            )
            if self.leaders[number] != wire.node:
                hint = self.choose.random() < 0.5
                leader = self.leaders[number] if hint else -1
                epoch = self.logs[number].epoch if hint else -1
                data = data.replace(
                    error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                    current_leader=k78.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
                )
            elif number in session.places:
                records, acquired, taken = self._acquire(key, number, left, request.share_acquire_mode == 1)
                left = max(left - taken, 0)
                data = data.replace(records=records, acquired_records=acquired)
            if data.error_code or data.acquired_records or batches.get(number) or request.share_session_epoch == 0:
                results.append(data)
        topics = (k78.ShareFetchableTopicResponse(topic_id=TOPIC_ID, partitions=tuple(results)),) if results else ()
        return k78.ShareFetchResponse(
            error_code=0, acquisition_lock_timeout_ms=int(self.lock_s * 1000), responses=topics, node_endpoints=()
        )

    def _acquire(
        self, key: Key, number: int, most: int, is_strict: bool
    ) -> tuple[bytes, tuple[k78.AcquiredRecords, ...], int]:
        """Whole batches, gaps between their records included, unless the limit is strict."""
        slots = self._all(number)
        data: list[bytes] = []
        acquired: list[tuple[int, int, int]] = []
        count = 0
        for batch in self.logs[number].batches:
            if count >= most:
                break
            view = BatchView(batch)
            taken = 0
            for offset in range(view.base_offset, view.last_offset + 1):
                slot = slots.get(offset)
                if slot is None or slot.owner is not None or slot.end >= 0 or slot.due_s > self.now_s:
                    continue
                if is_strict and count >= most:
                    break
                slot.owner, slot.until_s = key, self.now_s + self.lock_s
                slot.deliveries += 1
                count += 1
                taken += 1
                before = acquired[-1] if acquired else None
                if before is not None and before[1] + 1 == offset and before[2] == slot.deliveries:
                    acquired[-1] = (before[0], offset, slot.deliveries)
                else:
                    acquired.append((offset, offset, slot.deliveries))
            if taken:
                data.append(batch)
        ranges = tuple(
            k78.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=deliveries)
            for first, last, deliveries in acquired
        )
        return b"".join(data), ranges, count

    def _acknowledge(
        self, wire: Wire, request: k79.ShareAcknowledgeRequest, fault: str
    ) -> k79.ShareAcknowledgeResponse:
        key = (request.member_id or "", wire.node)
        code = self._session(wire, key, request.share_session_epoch, fault, may_open=False)
        results = []
        for part in (part for topic in request.topics for part in topic.partitions):
            if code == ErrorCode.NONE:
                number = part.partition_index
                if fault == "move":
                    self.move(number)
                batches = part.acknowledgement_batches
                error = self._settle_batches(key, number, batches, fault, renews=request.is_renew_ack)
                if self.leaders[number] != wire.node:
                    error = ErrorCode.NOT_LEADER_OR_FOLLOWER
                results.append(
                    k79.PartitionData(
                        partition_index=number,
                        error_code=error,
                        current_leader=k79.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1),
                    )
                )
        if request.share_session_epoch == -1:
            self._end(key)
        topics = (k79.ShareAcknowledgeTopicResponse(topic_id=TOPIC_ID, partitions=tuple(results)),) if results else ()
        return k79.ShareAcknowledgeResponse(
            error_code=code,
            acquisition_lock_timeout_ms=int(self.lock_s * 1000),
            responses=topics,
            node_endpoints=(),
        )

    def _settle_batches(
        self,
        key: Key,
        number: int,
        batches: tuple[k78.AcknowledgementBatch, ...] | tuple[k79.AcknowledgementBatch, ...],
        fault: str,
        *,
        renews: bool,
    ) -> ErrorCode:
        """All of a partition or nothing."""
        slots = self._all(number)
        wanted: list[tuple[Slot, int, int, int]] = []
        last = -1
        for batch in batches:
            (kind,) = batch.acknowledge_types
            if batch.first_offset <= last or batch.last_offset < batch.first_offset:
                return ErrorCode.INVALID_REQUEST
            last = batch.last_offset
            if not GAP <= kind <= RENEW or (kind == RENEW and not renews):
                return ErrorCode.INVALID_REQUEST
            for offset in range(batch.first_offset, batch.last_offset + 1):
                slot = slots.get(offset)
                if slot is None:
                    return ErrorCode.INVALID_REQUEST
                wanted.append((slot, offset, kind, batch.delay_ms))
        if fault == "expire" and wanted:
            wanted[len(wanted) // 2][0].owner = None
        if not all(slot.owner == key for slot, _, _, _ in wanted):
            return ErrorCode.INVALID_RECORD_STATE
        if wanted and fault == "not stored":
            return self.choose.choice(NOT_STORED)
        for slot, offset, kind, delay_ms in wanted:
            if kind == RENEW:
                slot.until_s = self.now_s + self.lock_s
                continue
            assert slot.end < 0
            slot.owner = None
            if kind == RELEASE:
                slot.due_s = self.now_s + delay_ms / 1000
                if slot.deliveries >= DELIVERIES:
                    slot.end = REJECT
            else:
                slot.end = kind
                self.stored[number].append(Stored(offset, kind))
        return ErrorCode.NONE


__all__ = ["ACCEPT", "REJECT", "RELEASE", "RENEW", "ShareSimulation"]
