"""A cluster in virtual time for consumer machines: it delays, loses, refuses, disconnects, moves leaders and lies.

One seed is one history. The brokers check every request: a fetch session out of step, an old leader epoch or an
offset that does not exist is refused as Kafka refuses it. `SimCoordinator` is a classic group of one broker.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from ixion.clients.address import Address
from ixion.clients.core.connection import ConnectionMachine
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k01_fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ixion.language.protocol.messages.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ixion.language.protocol.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.wire import RequestFrame, ServerConnection
from tests.clients.core.rest import assert_at_rest
from tests.clients.core.sim_group import SPOKEN_BY_GROUPS, SimCoordinator
from tests.clients.fake import SPOKEN, answer_bytes, placed

TOPIC = "orders"
TOPIC_ID = b"t" * 16
PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE,
)


class ReadLog:
    """A partition: batches with gaps between them, as compaction and markers leave them."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.offsets: list[int] = []  # of all records

    def append(self, count: int, gap: int = 0) -> None:
        builder = BatchBuilder(base_offset=self.end)
        for number in range(count):
            builder.append(None, b"%d" % (self.end + number))
        self.batches.append(placed(builder.build(), self.end, self.epoch))
        self.offsets += range(self.end, self.end + count)
        self.end += count + gap

    def read(self, offset: int, end: int) -> bytes:
        found = []
        for batch in self.batches:
            view = BatchView(batch)
            if view.last_offset >= offset and view.last_offset < end:
                found.append(batch)
                if len(found) == 2:
                    break
        return b"".join(found)

    def end_of(self, epoch: int) -> int:
        later = [view.base_offset for view in map(BatchView, self.batches) if view.leader_epoch > epoch]
        return min(later, default=self.end)

    def truncate(self, end: int) -> None:
        """A new leader has lost what lies from `end` on, where a batch begins."""
        self.epoch += 1
        self.batches = [batch for batch in self.batches if BatchView(batch).base_offset < end]
        self.offsets = [offset for offset in self.offsets if offset < end]
        self.end = end


class Wire:
    """The broker's end of one connection."""

    def __init__(self, sim: ConsumerSimulation, node: int, machine: ConnectionMachine) -> None:
        self.sim = sim
        self.node = node
        self.machine = machine
        self.is_open = True
        self.free_s = 0.0  # when the answers before have been given
        self._frames = ServerConnection()

    def carry(self) -> None:
        machine = self.machine
        while machine.unsent:
            self._frames.receive(bytes(machine.unsent.popleft()))
        machine.wrote(self.sim.now_s)
        while (frame := self._frames.next_request()) is not None:
            self._frames.answered()
            self.sim.handle(self, frame)

    def drop(self) -> None:
        if self.is_open:
            self.is_open = False
            self.machine.lost()


class ConsumerSimulation:
    def __init__(
        self, seed: int, *, nodes: int = 3, partitions: int = 2, trouble: float = 0.25, racks: bool = False
    ) -> None:
        self.choose = random.Random(seed)
        self.now_s = 1000.0
        self.trouble = trouble
        self.racks = racks  # whether leaders name another replica to read from
        self.logs = [ReadLog() for _ in range(partitions)]
        self.leaders = [self.choose.randrange(nodes) for _ in range(partitions)]
        self.nodes = nodes
        self.down: set[int] = set()  # nodes that were shut down: out of the metadata, and out of reach
        self.machines: list[Any] = []  # of consumers, or of share consumers
        self.seen: list[tuple[int, ApiKey, Struct]] = []
        self.faults: list[KafkaError] = []  # that the caller got
        self.group: SimCoordinator = SimCoordinator(self)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._wires: list[Wire] = []
        self._sessions: dict[int, tuple[int, dict[int, FetchPartition]]] = {}  # next epoch, partitions

    def consumer(self, group: str | None = None, settings: ConsumerSettings | None = None) -> ConsumerMachine:
        machine = ConsumerMachine(
            [Address("node-0", 9092)],
            group,
            settings or ConsumerSettings(),
            self.choose.random,
            self.now_s,
            wall_ms=lambda: int(self.now_s * 1000),
        )
        self.machines.append(machine)
        return machine

    def at(self, delay_s: float, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now_s + delay_s, self._number, act))

    def count(self, api: ApiKey) -> int:
        return sum(seen == api for _, seen, _ in self.seen)

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Let that much time pass, or until that is so."""
        end_s = self.now_s + seconds
        steps = 0
        while True:
            steps += 1
            assert steps < 200_000, "a machine asks to be called without end"
            self._settle()
            if until():
                return
            event_s = self._events[0][0] if self._events else float("inf")
            wake_s = min(machine.wake_s for machine in self.machines)
            next_s = min(event_s, max(wake_s, self.now_s + 1e-6))
            if next_s > end_s:
                self.now_s = end_s
                return
            self.now_s = next_s
            while self._events and self._events[0][0] <= self.now_s:
                heapq.heappop(self._events)[2]()

    def poll(self, machine: ConsumerMachine, seconds: float = 0.0, most: int = 7) -> list[tuple[int, int]]:
        """What a face does: duties, records, faults. Partitions and offsets of the records."""
        end_s = self.now_s + seconds
        machine.enter(self.now_s)
        try:
            for _ in range(10_000):
                machine.told.clear()
                duty = machine.next_duty(self.now_s)
                if duty is not None:
                    machine.done(duty)
                    continue
                found = machine.buffer.take(most)
                if found:
                    self._settle()
                    return [(record.partition, record.offset) for record in found]
                machine.check()
                if self.now_s >= end_s:
                    return []
                self.run(end_s - self.now_s, lambda: machine.has_news)
            raise AssertionError("there is news without end")
        except KafkaError as fault:
            self.faults.append(fault)
            return []
        finally:
            machine.exit(self.now_s)

    def move(self, partition: int) -> None:
        self.leaders[partition] = self.choose.choice([node for node in range(self.nodes) if node not in self.down])
        self.logs[partition].epoch += 1

    def shut_down(self, node: int) -> None:
        """A clean shutdown: its partitions, and the group if it coordinates that, move to others first."""
        self.down.add(node)
        for partition, leader in enumerate(self.leaders):
            if leader == node:
                self.move(partition)
        if self.group.node == node:
            self.group.node = min(each for each in range(self.nodes) if each not in self.down)
        for wire in self._wires:
            if wire.node == node:
                wire.drop()

    def _settle(self) -> None:
        for _ in range(1000):
            for machine in self.machines:
                machine.tick(self.now_s)
                for opened in machine.client.take_opened():
                    self._connect(opened)
            for wire in self._wires:
                if wire.is_open and wire.machine.unsent:
                    wire.carry()
            self._wires = [wire for wire in self._wires if wire.is_open and not wire.machine.closed]
            if not any(wire.machine.arrivals for wire in self._wires):
                for machine in self.machines:
                    assert_at_rest(machine, self.now_s)
                return
        raise AssertionError("no end of arrivals")

    def _connect(self, machine: ConnectionMachine) -> None:
        wire = Wire(self, int(machine.address.host.removeprefix("node-")), machine)
        if wire.node in self.down or self.choose.random() < self.trouble / 2:
            delay_s = 0.001 if wire.node in self.down else self.choose.random()
            self.at(delay_s, lambda: machine.lost("refused"))
            return

        def connected() -> None:
            if not machine.closed:
                machine.connected(self.now_s)
                self._wires.append(wire)

        self.at(self.choose.random() * 0.01, connected)

    def handle(self, wire: Wire, frame: RequestFrame) -> None:
        api = ApiKey(frame.api_key)
        _, request = frame.decode()
        self.seen.append((wire.node, api, request))
        delay_s = self.choose.random() * 0.02
        if self.choose.random() < self.trouble / 10:
            delay_s = self.choose.random() * 60  # beyond the request timeout, sometimes
        delay_s += self.wait_of(request)
        done_s = max(wire.free_s, self.now_s + delay_s)
        wire.free_s = done_s
        fault = self._fault(api)

        def answer_with(answer: Struct) -> None:
            data = answer_bytes(api, frame.api_version, frame.correlation_id, answer)
            if not wire.is_open or wire.machine.closed:
                return  # carried out, and the answer is lost
            if fault == "drop after":
                wire.drop()
            elif fault == "half":
                wire.machine.receive(data[: len(data) // 2], self.now_s)
                wire.drop()
            elif fault == "garbage":
                wire.machine.receive(data[:8] + self.choose.randbytes(len(data) - 8), self.now_s)
            elif fault != "silence":
                wire.machine.receive(data, self.now_s)

        def act() -> None:
            if fault == "drop" or (not wire.is_open and self.choose.random() < 0.5):
                wire.drop()
            elif api in SPOKEN_BY_GROUPS or api == ApiKey.SHARE_GROUP_HEARTBEAT:
                self.group.answer(request, answer_with)
            else:
                answer_with(self.answer_on(wire, request, fault))

        self.at(done_s - self.now_s, act)

    def _fault(self, api: ApiKey) -> str:
        if self.choose.random() >= self.trouble:
            return ""
        return self.choose.choice(["drop", "drop after", "half", "silence", "garbage", *self.faults_of(api)])

    def faults_of(self, api: ApiKey) -> list[str]:
        if api == ApiKey.FETCH:
            return ["passing", "move", "session", "empty"] * 2
        if api in (ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH):
            return ["passing"] * 4
        return []

    def wait_of(self, request: Struct) -> float:
        """How long a broker holds the request."""
        if isinstance(request, FetchRequest) and not self._has_news(request):
            return request.max_wait_ms / 1000
        return 0.0

    def answer_on(self, wire: Wire, request: Struct, fault: str) -> Struct:
        node = wire.node
        if isinstance(request, ApiVersionsRequest):
            apis = [*SPOKEN, *SPOKEN_BY_GROUPS]
            entries = [ApiVersion(api_key=api, min_version=api.oldest, max_version=api.newest) for api in apis]
            return ApiVersionsResponse(error_code=0, api_keys=tuple(entries))
        if isinstance(request, MetadataRequest):
            return self._metadata(request)
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(node, request, fault)
        if isinstance(request, OffsetForLeaderEpochRequest):
            return self._epoch_ends(node, request, fault)
        assert isinstance(request, FetchRequest)
        return self._fetch(node, request, fault)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        partitions = tuple(
            MetadataResponsePartition(
                error_code=0,
                partition_index=number,
                leader_id=leader,
                leader_epoch=self.logs[number].epoch,
                replica_nodes=tuple(range(self.nodes)),
                isr_nodes=tuple(range(self.nodes)),
            )
            for number, leader in enumerate(self.leaders)
        )
        topic = MetadataResponseTopic(error_code=0, name=TOPIC, topic_id=TOPIC_ID, partitions=partitions)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        others = [
            MetadataResponseTopic(error_code=code, name=each.name, partitions=())
            for each in request.topics or ()
            if each.name != TOPIC
        ]
        brokers = tuple(
            MetadataResponseBroker(node_id=node, host=f"node-{node}", port=9092)
            for node in range(self.nodes)
            if node not in self.down
        )
        return MetadataResponse(brokers=brokers, controller_id=0, topics=(topic, *others))

    def _list_offsets(self, node: int, request: ListOffsetsRequest, fault: str) -> ListOffsetsResponse:
        results = []
        for part in (part for topic in request.topics for part in topic.partitions):
            log = self.logs[part.partition_index]
            code = self._refusal(node, part.partition_index, part.current_leader_epoch, fault)
            ends = {-1: log.end, -2: log.start}
            offset = -1 if code else ends.get(part.timestamp, -1)  # no record is younger than any time
            results.append(
                ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code, offset=offset)
            )
        return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=TOPIC, partitions=tuple(results)),))

    def _epoch_ends(self, node: int, request: OffsetForLeaderEpochRequest, fault: str) -> OffsetForLeaderEpochResponse:
        ends = []
        for part in (part for topic in request.topics for part in topic.partitions):
            code = self._refusal(node, part.partition, part.current_leader_epoch, fault)
            end = -1 if code else self.logs[part.partition].end_of(part.leader_epoch)
            ends.append(EpochEndOffset(error_code=code, partition=part.partition, end_offset=end))
        topic = OffsetForLeaderTopicResult(topic=TOPIC, partitions=tuple(ends))
        return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=(topic,))

    def _refusal(self, node: int, partition: int, leader_epoch: int, fault: str) -> int:
        epoch = self.logs[partition].epoch
        if self.leaders[partition] != node:
            return int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if -1 < leader_epoch < epoch:
            return int(ErrorCode.FENCED_LEADER_EPOCH)
        return int(self.choose.choice(PASSING)) if fault == "passing" else 0

    # Fetches, with sessions.

    def _has_news(self, request: FetchRequest) -> bool:
        return request.session_epoch == 0 or any(
            self.logs[part.partition].end > part.fetch_offset for topic in request.topics for part in topic.partitions
        )

    def _fetch(self, node: int, request: FetchRequest, fault: str) -> FetchResponse:
        named = {part.partition: part for topic in request.topics for part in topic.partitions}
        if request.session_epoch == 0:
            self._sessions.pop(request.session_id, None)
            session_id = self.choose.randrange(1, 2**31)
            wanted = named
        else:
            session_id = request.session_id
            known = self._sessions.get(session_id)
            if known is None or fault == "session":
                self._sessions.pop(session_id, None)
                return FetchResponse(throttle_time_ms=0, error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
            if known[0] != request.session_epoch:
                code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
                return FetchResponse(throttle_time_ms=0, error_code=code, responses=())
            gone = {number for topic in request.forgotten_topics_data for number in topic.partitions}
            wanted = {**{number: part for number, part in known[1].items() if number not in gone}, **named}
        if self.choose.random() < self.trouble / 2:
            session_id = 0  # no room for a session
        else:
            self._sessions[session_id] = (request.session_epoch + 1, wanted)
        results = []
        for number, part in wanted.items():
            if fault == "move":
                self.move(number)
            result = self._fetch_one(node, part, request.rack_id, fault)
            if request.session_epoch == 0 or result.error_code or result.records or result.preferred_read_replica >= 0:
                results.append(result)
        topics = (FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=tuple(results)),)
        return FetchResponse(throttle_time_ms=0, session_id=session_id, responses=topics if results else ())

    def _fetch_one(self, node: int, part: FetchPartition, rack: str, fault: str) -> PartitionData:
        log = self.logs[part.partition]
        leads = self.leaders[part.partition] == node
        end = log.end
        code, records, replica = 0, b"", -1
        if -1 < part.current_leader_epoch < log.epoch:
            code = int(ErrorCode.FENCED_LEADER_EPOCH)
        elif not leads and not self.racks:
            code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif fault == "passing":
            code = int(self.choose.choice(PASSING))
        elif leads and self.racks and rack and self.choose.random() < 0.5:
            replica = (node + 1) % self.nodes
        else:
            if not leads and log.batches and self.choose.random() < 0.3:
                end = BatchView(log.batches[-1]).base_offset  # a follower that is a batch behind
            if not log.start <= part.fetch_offset <= end:
                code = int(ErrorCode.OFFSET_OUT_OF_RANGE)
            elif fault != "empty":
                records = log.read(part.fetch_offset, end)
        return PartitionData(
            partition_index=part.partition,
            error_code=code,
            high_watermark=end,
            last_stable_offset=end,
            aborted_transactions=None,
            preferred_read_replica=replica,
            records=records,
        )


def places(sim: ConsumerSimulation) -> list[TopicPartition]:
    return [TopicPartition(TOPIC, number) for number in range(len(sim.logs))]
