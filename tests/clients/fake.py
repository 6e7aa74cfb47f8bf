"""A cluster of scripted brokers: small, honest about sequences, and at fault exactly when told to be.

    with FakeCluster(nodes=2) as fakes:
        fakes.add_topic("orders", leaders=[1, 2])
        fakes.at(1, ApiKey.PRODUCE, Fault.DROP_AFTER)       # the next Produce that node 1 sees

What is scripted for an API happens to the next requests for it, one each; then the broker behaves again. A script entry
is a fault of the connection, a change of the answer's bytes, or a function from the request to its answer.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from types import TracebackType
from typing import NamedTuple

from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import new_id
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.envelope import frame_response_as
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ixion.language.protocol.messages.k01_fetch import (
    FetchableTopicResponse,
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
from ixion.language.protocol.messages.k19_create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.language.protocol.messages.k20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ixion.language.protocol.messages.k23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batch import BatchView
from ixion.language.records.layout import BASE_OFFSET, LEADER_EPOCH, NO_SEQUENCE, add_to_sequence
from ixion.language.wire import RequestFrame, ServerConnection

SPOKEN = (
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA),
    *(ApiKey.API_VERSIONS, ApiKey.INIT_PRODUCER_ID, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS),
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
)
HELD_S = 0.02  # how long a fetch that finds nothing is held


class Fault(Enum):
    DROP = auto()  # hang up without having done anything
    DROP_AFTER = auto()  # do it, then hang up without an answer
    HALF = auto()  # do it, send half of the answer, hang up
    SILENCE = auto()  # never answer
    WRONG_ID = auto()  # answer under another correlation id
    GARBAGE = auto()  # answer with bytes that are no such answer
    DEAF = auto()  # read no more from this connection, and keep it open


class Mangled(NamedTuple):
    """Do it, but send other bytes than the answer's; `data` is a whole frame, its size included."""

    change: Callable[[bytes], bytes]
    hangs_up: bool = False


Reaction = Fault | Mangled | Callable[[Struct], Struct]


def placed(data: bytes, base: int, epoch: int) -> bytes:
    """A batch with the base offset and the leader epoch of its place in a log. The CRC does not cover these two."""
    batch = bytearray(data)
    struct.pack_into(">q", batch, BASE_OFFSET, base)
    struct.pack_into(">i", batch, LEADER_EPOCH, epoch)
    return bytes(batch)


class FakeLog:
    """A partition: batches, and the last sequences of each producer, checked as Kafka checks them."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start = 0
        self.end = 0
        self.epoch = -1  # of the leader
        self._lock = threading.Lock()  # a connection that the client has left may still be working off requests
        self._known: dict[int, deque[tuple[int, int, int]]] = {}  # producer -> first, last sequence, base offset

    def append(self, data: bytes) -> tuple[int, int]:
        """The error code and the base offset."""
        with self._lock:
            return self._append(data)

    def _append(self, data: bytes) -> tuple[int, int]:
        view = BatchView(data)
        assert view.crc_is_valid()
        first, last = view.base_sequence, view.last_sequence
        if first != NO_SEQUENCE:
            known = self._known.setdefault(view.producer_id, deque(maxlen=5))
            for entry in known:
                if entry[:2] == (first, last):
                    return 0, entry[2]
            if known and add_to_sequence(known[-1][1], 1) != first:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            known.append((first, last, self.end))
        base = self.end
        self.batches.append(placed(data, base, self.epoch))
        self.end += view.last_offset_delta + 1
        return 0, base

    def lead_anew(self, end: int) -> None:
        """A new leader, which has lost what lies from `end` on, where a batch begins."""
        self.epoch += 1
        self.batches = [batch for batch in self.batches if BatchView(batch).base_offset < end]
        self.end = end

    def end_of(self, epoch: int) -> int:
        later = [view.base_offset for view in map(BatchView, self.batches) if view.leader_epoch > epoch]
        return min(later, default=self.end)

    def values(self) -> list[bytes | None]:
        return [record.value for batch in self.batches for record in BatchView(batch)]


class FakeCluster:
    def __init__(self, nodes: int = 1, *, newest: dict[ApiKey, int] | None = None) -> None:
        """`newest` holds versions down, as an older broker would."""
        self.newest = newest or {}
        self.logs: dict[TopicPartition, FakeLog] = {}
        self.leaders: dict[str, list[int]] = {}
        self.ids: dict[str, bytes] = {}
        self.producers = 0
        self.seen: list[tuple[int, ApiKey, Struct]] = []  # node, api, request
        self.nodes = {number: FakeBroker(self, number) for number in range(1, nodes + 1)}

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for node in self.nodes.values():
            node.stop()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.nodes[1].port}"

    def add_topic(self, name: str, leaders: list[int]) -> None:
        self.leaders[name] = leaders
        self.ids[name] = new_id()
        for number in range(len(leaders)):
            self.logs[TopicPartition(name, number)] = FakeLog()

    def at(self, node: int, api: ApiKey, *reactions: Reaction) -> None:
        self.nodes[node].script.setdefault(api, deque()).extend(reactions)

    def count(self, api: ApiKey) -> int:
        return sum(seen == api for _, seen, _ in self.seen)

    def name_of(self, name: str, topic_id: bytes) -> str:
        return name or next(known for known, value in self.ids.items() if value == topic_id)


class FakeBroker:
    def __init__(self, cluster: FakeCluster, number: int) -> None:
        self.cluster = cluster
        self.number = number
        self.script: dict[ApiKey, deque[Reaction]] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._stopped = threading.Event()
        self._run(self._accept)

    def stop(self) -> None:
        """Hang up on everyone and listen no more."""
        self._stopped.set()
        for opened in [self._listener, *self._open]:
            try:
                opened.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            opened.close()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(client)
            if self._stopped.is_set():  # `stop` may not have seen it
                client.close()
                return
            self._run(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        wire = ServerConnection()
        try:
            while data := client.recv(65536):
                wire.receive(data)
                while (frame := wire.next_request()) is not None:
                    if not self._react(client, frame):
                        client.shutdown(socket.SHUT_RDWR)
                        return
                    wire.answered()
        except OSError:
            pass  # the client or the test has hung up
        except (LookupError, StopIteration):
            client.close()  # garbage that we sent came back as a topic or partition that does not exist

    def _react(self, client: socket.socket, frame: RequestFrame) -> bool:
        """Whether the connection goes on."""
        api = ApiKey(frame.api_key)
        if api == ApiKey.API_VERSIONS and frame.api_version > self.cluster.newest.get(api, api.newest):
            client.sendall(answer_bytes(api, 0, frame.correlation_id, self._versions(ErrorCode.UNSUPPORTED_VERSION)))
            return True
        _, request = frame.decode()
        self.cluster.seen.append((self.number, api, request))
        script = self.script.get(api)
        reaction = script.popleft() if script else None
        if reaction is Fault.DROP:
            return False
        if reaction is Fault.SILENCE:
            return True
        if reaction is Fault.DEAF:
            self._stopped.wait()
            return False
        if reaction is None or isinstance(reaction, Fault | Mangled):
            answer = self._answer(request)
        else:
            answer = reaction(request)
        if reaction is Fault.DROP_AFTER:
            return False
        if isinstance(request, ProduceRequest) and request.acks == 0:
            return True
        wrong = 1 if reaction is Fault.WRONG_ID else 0
        data = answer_bytes(api, frame.api_version, frame.correlation_id + wrong, answer)
        if reaction is Fault.HALF:
            client.sendall(data[: len(data) // 2])
            return False
        if reaction is Fault.GARBAGE:
            data = data[:8] + b"\xff" * (len(data) - 8)
        if isinstance(reaction, Mangled):
            data = reaction.change(data)
        client.sendall(data)
        return not (isinstance(reaction, Mangled) and reaction.hangs_up)

    def _answer(self, request: Struct) -> Struct:
        match request:
            case ApiVersionsRequest():
                return self._versions(ErrorCode.NONE)
            case MetadataRequest():
                return self._metadata(request)
            case InitProducerIdRequest():
                self.cluster.producers += 1
                number = 6999 + self.cluster.producers
                return InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=number, producer_epoch=0)
            case CreateTopicsRequest():
                return self._create(request)
            case DeleteTopicsRequest():
                return self._delete(request)
            case ProduceRequest():
                return self._produce(request)
            case ListOffsetsRequest():
                return self._list_offsets(request)
            case FetchRequest():
                return self._fetch(request)
            case OffsetForLeaderEpochRequest():
                return self._epoch_ends(request)
        raise AssertionError(f"nobody taught the fake {type(request).__name__}")

    def _versions(self, code: ErrorCode) -> ApiVersionsResponse:
        newest = self.cluster.newest
        entries = [
            ApiVersion(api_key=api, min_version=api.oldest, max_version=newest.get(api, api.newest)) for api in SPOKEN
        ]
        if code:
            entries = [entry for entry in entries if entry.api_key == ApiKey.API_VERSIONS]
        return ApiVersionsResponse(error_code=code, api_keys=tuple(entries))

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        known = self.cluster.leaders
        names = list(known) if request.topics is None else [topic.name or "" for topic in request.topics]
        topics = []
        for name in names:
            if name in known:
                partitions = tuple(
                    MetadataResponsePartition(
                        error_code=0,
                        partition_index=number,
                        leader_id=leader,
                        leader_epoch=self.cluster.logs[TopicPartition(name, number)].epoch,
                        replica_nodes=(1,),
                        isr_nodes=(1,),
                    )
                    for number, leader in enumerate(known[name])
                )
                topic_id = self.cluster.ids[name]
                topics.append(MetadataResponseTopic(error_code=0, name=name, topic_id=topic_id, partitions=partitions))
            else:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                topics.append(MetadataResponseTopic(error_code=code, name=name, partitions=()))
        brokers = tuple(
            MetadataResponseBroker(node_id=number, host="127.0.0.1", port=node.port)
            for number, node in self.cluster.nodes.items()
        )
        return MetadataResponse(brokers=brokers, controller_id=1, topics=tuple(topics))

    def _create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        (topic,) = request.topics
        code = ErrorCode.TOPIC_ALREADY_EXISTS if topic.name in self.cluster.leaders else ErrorCode.NONE
        if not code:
            self.cluster.add_topic(topic.name, [self.number] * topic.num_partitions)
        result = CreatableTopicResult(name=topic.name, error_code=code, error_message=None)
        return CreateTopicsResponse(throttle_time_ms=0, topics=(result,))

    def _delete(self, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        (topic,) = request.topics
        code = ErrorCode.NONE if topic.name in self.cluster.leaders else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.cluster.leaders.pop(topic.name or "", None)
        return DeleteTopicsResponse(
            throttle_time_ms=0, responses=(DeletableTopicResult(name=topic.name, error_code=code),)
        )

    def _leads(self, place: TopicPartition) -> bool:
        return self.cluster.leaders[place.topic][place.partition] == self.number

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        topics = []
        for topic in request.topic_data:
            name = self.cluster.name_of(topic.name, topic.topic_id)
            results = []
            for part in topic.partition_data:
                place = TopicPartition(name, part.index)
                code, base = int(ErrorCode.NOT_LEADER_OR_FOLLOWER), -1
                if self._leads(place):
                    code, base = self.cluster.logs[place].append(bytes(part.records or b""))
                results.append(PartitionProduceResponse(index=part.index, error_code=code, base_offset=base))
            topics.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(results))
            )
        return ProduceResponse(responses=tuple(topics))

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            results = []
            for part in topic.partitions:
                place = TopicPartition(topic.name, part.partition_index)
                log = self.cluster.logs[place]
                code = 0 if self._leads(place) else ErrorCode.NOT_LEADER_OR_FOLLOWER
                offset = log.start if part.timestamp == -2 else log.end
                results.append(
                    ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code, offset=offset)
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(results)))
        return ListOffsetsResponse(topics=tuple(topics))

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        topics = []
        found = False
        for topic in request.topics:
            results = []
            for part in topic.partitions:
                place = TopicPartition(self.cluster.name_of(topic.topic, topic.topic_id), part.partition)
                result = self._fetch_one(place, part.fetch_offset, part.current_leader_epoch)
                found = found or bool(result.records) or result.error_code != 0
                results.append(result)
            topics.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=tuple(results)))
        if not found:
            time.sleep(HELD_S)
        return FetchResponse(throttle_time_ms=0, responses=tuple(topics))

    def _epoch_ends(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        topics = []
        for topic in request.topics:
            ends = []
            for part in topic.partitions:
                log = self.cluster.logs[TopicPartition(topic.topic, part.partition)]
                code = ErrorCode.FENCED_LEADER_EPOCH if part.current_leader_epoch < log.epoch else ErrorCode.NONE
                end = log.end_of(part.leader_epoch)
                ends.append(EpochEndOffset(error_code=code, partition=part.partition, leader_epoch=0, end_offset=end))
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(ends)))
        return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=tuple(topics))

    def _fetch_one(self, place: TopicPartition, offset: int, leader_epoch: int) -> PartitionData:
        log = self.cluster.logs[place]
        code, records = 0, b""
        if not self._leads(place):
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif -1 < leader_epoch < log.epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
        elif not log.start <= offset <= log.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            records = next((batch for batch in log.batches if BatchView(batch).last_offset >= offset), b"")
        return PartitionData(
            partition_index=place.partition,
            error_code=code,
            high_watermark=log.end,
            last_stable_offset=log.end,
            aborted_transactions=None,
            records=records,
        )


def answer_bytes(api: ApiKey, version: int, correlation_id: int, answer: Struct) -> bytes:
    return joined(frame_response_as(api, version, correlation_id, answer))
