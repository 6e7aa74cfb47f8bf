"""A cluster in virtual time for a producer machine: it delays, loses, refuses, disconnects, moves leaders and lies.

One seed is one history. Requests that were sent before a connection broke may still be carried out later, as a broker
that reads what lies in its socket does.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable

from ixion.clients.address import Address
from ixion.clients.core.connection import ConnectionMachine
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.core.producer.machine import ProducerMachine
from ixion.clients.core.producer.settings import ProducerSettings
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ixion.language.protocol.messages.k03_metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ixion.language.protocol.messages.k18_api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batch import BatchView
from ixion.language.records.layout import NO_SEQUENCE, add_to_sequence
from ixion.language.wire import RequestFrame, ServerConnection
from tests.clients.core.rest import assert_at_rest
from tests.clients.fake import SPOKEN, answer_bytes

TOPIC = "orders"
TOPIC_ID = b"t" * 16
RETRIABLE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)
LASTING = (ErrorCode.INVALID_RECORD, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class SimLog:
    """A partition: values, and what Kafka keeps of each producer: the epoch and the last five batches."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self._known: dict[int, tuple[int, deque[tuple[int, int, int]]]] = {}

    def append(self, data: bytes) -> tuple[int, int]:
        """The error code and the base offset."""
        view = BatchView(data)
        assert view.crc_is_valid()
        first, last = view.base_sequence, view.last_sequence
        if first != NO_SEQUENCE:
            epoch, batches = self._known.get(view.producer_id, (-1, deque(maxlen=5)))
            if view.producer_epoch < epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if view.producer_epoch > epoch:
                if first != 0 and epoch >= 0:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
                batches = deque(maxlen=5)
            for entry in batches:
                if entry[:2] == (first, last):
                    return 0, entry[2]
            if batches and add_to_sequence(batches[-1][1], 1) != first:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            batches.append((first, last, len(self.values)))
            self._known[view.producer_id] = (view.producer_epoch, batches)
        base = len(self.values)
        self.values += [bytes(record.value or b"") for record in view]
        return 0, base


class Wire:
    """The broker's end of one connection."""

    def __init__(self, sim: Simulation, node: int, machine: ConnectionMachine) -> None:
        self.sim = sim
        self.node = node
        self.machine = machine
        self.is_open = True
        self.free_s = 0.0  # when the answers before have been given
        self._frames = ServerConnection()

    def carry(self) -> None:
        """What the client has written reaches the broker."""
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


class Simulation:
    def __init__(
        self, seed: int, settings: ProducerSettings, *, nodes: int = 3, partitions: int = 2, trouble: float = 0.25
    ) -> None:
        self.choose = random.Random(seed)
        self.now_s = 1000.0
        self.trouble = trouble  # how likely a request meets a fault
        self.logs = [SimLog() for _ in range(partitions)]
        self.leaders = [self.choose.randrange(nodes) for _ in range(partitions)]
        self.epochs = [0] * partitions
        self.nodes = nodes
        self.down: set[int] = set()  # nodes that were shut down: out of the metadata, and out of reach
        self.topic_id = TOPIC_ID
        self.heard: dict[bytes, list[Delivery]] = {}
        self.produced: list[tuple[int, ProduceRequest]] = []  # node, request
        self.machine = ProducerMachine([Address("node-0", 9092)], settings, self.choose.random)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._wires: list[Wire] = []
        self._producers = 0

    def at(self, delay_s: float, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now_s + delay_s, self._number, act))

    def send(self, value: bytes, partition: int | None) -> bool:
        """Whether the record was accepted."""
        heard = self.heard.setdefault(value, [])
        batch = self.machine.append(TOPIC, partition, None, value, (), 1, heard.append, self.now_s)
        if batch is None:
            del self.heard[value]
        return batch is not None

    def run(self, seconds: float) -> None:
        """Let that much time pass, or until nothing is left to happen."""
        end_s = self.now_s + seconds
        steps = 0
        while True:
            steps += 1
            assert steps < 200_000, "the machine asks to be called without end"
            self._settle()
            event_s = self._events[0][0] if self._events else float("inf")
            wake_s = self.machine.wake_s
            next_s = min(event_s, max(wake_s, self.now_s + 1e-6))
            if next_s > end_s:
                self.now_s = end_s
                return
            self.now_s = next_s
            while self._events and self._events[0][0] <= self.now_s:
                heapq.heappop(self._events)[2]()

    def shut_down(self, node: int) -> None:
        """A clean shutdown: its partitions move to others first."""
        self.down.add(node)
        others = [each for each in range(self.nodes) if each not in self.down]
        for partition, leader in enumerate(self.leaders):
            if leader == node:
                self.leaders[partition] = self.choose.choice(others)
                self.epochs[partition] += 1
        for wire in self._wires:
            if wire.node == node:
                wire.drop()

    def finish(self, seconds: float = 2000.0) -> None:
        """No more trouble: everything must settle."""
        self.trouble = 0.0
        self.machine.seal_all()
        self.run(seconds)
        assert not self.machine.incomplete
        assert not self.machine.active
        assert self.machine.used_bytes == 0

    def _settle(self) -> None:
        for _ in range(1000):
            self.machine.tick(self.now_s)
            for opened in self.machine.client.take_opened():
                self._connect(opened)
            for wire in self._wires:
                if wire.is_open and wire.machine.unsent:
                    wire.carry()
            self._wires = [wire for wire in self._wires if wire.is_open and not wire.machine.closed]
            while self.machine.due:
                wish, delivery = self.machine.due.popleft()
                wish(delivery)
            if not any(wire.machine.arrivals for wire in self._wires):
                assert_at_rest(self.machine, self.now_s)
                return
        raise AssertionError("no end of arrivals")

    def _connect(self, machine: ConnectionMachine) -> None:
        node = int(machine.address.host.removeprefix("node-"))
        wire = Wire(self, node, machine)
        if node in self.down or self.choose.random() < self.trouble / 2:
            delay_s = 0.001 if node in self.down else self.choose.random()
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
        delay_s = self.choose.random() * 0.02
        if self.choose.random() < self.trouble / 10:
            delay_s = self.choose.random() * 60  # beyond the request timeout, sometimes
        done_s = max(wire.free_s, self.now_s + delay_s)
        wire.free_s = done_s
        fault = self._fault(api)

        def act() -> None:
            if fault == "drop" or (not wire.is_open and self.choose.random() < 0.5):
                wire.drop()
                return
            answer = self._answer(wire.node, request, fault)
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

        self.at(done_s - self.now_s, act)

    def _fault(self, api: ApiKey) -> str:
        if self.choose.random() >= self.trouble:
            return ""
        faults = ["drop", "drop after", "half", "silence"]
        if api == ApiKey.PRODUCE:
            faults += ["retriable", "lasting", "move", "too large", "lost"]
        return self.choose.choice(faults)

    def _answer(self, node: int, request: Struct, fault: str) -> Struct:
        if isinstance(request, ApiVersionsRequest):
            entries = [ApiVersion(api_key=api, min_version=api.oldest, max_version=api.newest) for api in SPOKEN]
            return ApiVersionsResponse(error_code=0, api_keys=tuple(entries))
        if isinstance(request, InitProducerIdRequest):
            self._producers += 1
            return InitProducerIdResponse(
                throttle_time_ms=0, error_code=0, producer_id=self._producers, producer_epoch=0
            )
        if isinstance(request, MetadataRequest):
            return self._metadata()
        assert isinstance(request, ProduceRequest)
        self.produced.append((node, request))
        return self._produce(node, request, fault)

    def _metadata(self) -> MetadataResponse:
        partitions = tuple(
            MetadataResponsePartition(
                error_code=0,
                partition_index=number,
                leader_id=leader,
                leader_epoch=self.epochs[number],
                replica_nodes=(leader,),
                isr_nodes=(leader,),
            )
            for number, leader in enumerate(self.leaders)
        )
        topic = MetadataResponseTopic(error_code=0, name=TOPIC, topic_id=self.topic_id, partitions=partitions)
        brokers = tuple(
            MetadataResponseBroker(node_id=node, host=f"node-{node}", port=9092)
            for node in range(self.nodes)
            if node not in self.down
        )
        return MetadataResponse(brokers=brokers, controller_id=0, topics=(topic,))

    def _produce(self, node: int, request: ProduceRequest, fault: str) -> ProduceResponse:
        results = []
        for part in (part for topic in request.topic_data for part in topic.partition_data):
            if fault == "move":
                self.leaders[part.index] = self.choose.randrange(self.nodes)
                self.epochs[part.index] += 1
            data = bytes(part.records or b"")
            code, base = 0, -1
            leader = LeaderIdAndEpoch()
            if self.leaders[part.index] != node:
                code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                if self.choose.random() < 0.5:
                    leader = LeaderIdAndEpoch(leader_id=self.leaders[part.index], leader_epoch=self.epochs[part.index])
            elif fault == "retriable":
                code = int(self.choose.choice(RETRIABLE))
            elif fault == "lasting":
                code = int(self.choose.choice(LASTING))
            elif fault == "too large" and BatchView(data).count > 1:
                code = int(ErrorCode.MESSAGE_TOO_LARGE)
            else:
                code, base = self.logs[part.index].append(data)
                if fault == "lost" and code == 0:
                    code, base = int(ErrorCode.REQUEST_TIMED_OUT), -1  # written, but not by enough replicas in time
            results.append(
                PartitionProduceResponse(index=part.index, error_code=code, base_offset=base, current_leader=leader)
            )
        topic = TopicProduceResponse(name=TOPIC, topic_id=self.topic_id, partition_responses=tuple(results))
        return ProduceResponse(responses=(topic,))
