"""Batches that take long to inflate, recode or walk: a worker thread has them, and every other client is served."""

from __future__ import annotations

import random
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.testing.broker import Broker
from tests.apis import txn_kit
from tests.apis.raw import Raw

WAIT = 20.0
LOOP_BYTES = 800_000  # what the event loop may inflate and deflate of a request before it gives up: 512 kB and a piece


class Gate:
    """Stops worker threads that deflate or inflate gzip, until it is opened. Counts what other threads do."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        self.elsewhere = 0  # bytes deflated or inflated on other threads
        self.compresses = zlib.compress
        self.makes_stream = zlib.decompressobj

    def passes(self) -> bool:
        """False for the event loop, which does not wait."""
        if "client-work" not in threading.current_thread().name:
            return False
        self.reached.set()
        assert self.open.wait(WAIT)
        return True

    def compress(self, data: bytes, *args: Any) -> bytes:
        if not self.passes():
            self.elsewhere += len(data)
        return self.compresses(data, *args)

    def decompressobj(self, *args: Any) -> Stream:
        return Stream(self, self.makes_stream(*args))


class Stream:
    def __init__(self, gate: Gate, real: Any) -> None:
        self._gate = gate
        self._real = real

    def decompress(self, *args: Any) -> bytes:
        waited = self._gate.passes()
        piece: bytes = self._real.decompress(*args)
        if not waited:
            self._gate.elsewhere += len(piece)
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()
    monkeypatch.setattr(zlib, "compress", made.compress)
    monkeypatch.setattr(zlib, "decompressobj", made.decompressobj)
    yield made
    made.open.set()


def name() -> str:
    return f"t{random.randrange(10**9)}"


def long_batch(codec: Codec, size: int = 950_000, timestamp: int = 1, **producer: Any) -> bytes:
    builder = BatchBuilder(codec=codec, max_bytes=1 << 30, **producer)
    for _ in range(10):
        builder.append(None, bytes(size // 10), timestamp=timestamp)
    return builder.build()


def short_batch(value: bytes = b"v") -> bytes:
    builder = BatchBuilder()
    builder.append(None, value, timestamp=1)
    return builder.build()


def send(raw: Raw, topic: str, records: bytes, acks: int = -1) -> None:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=records),))
    raw.send(ApiKey.PRODUCE, 9, ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(data,)))


def produced(raw: Raw) -> tuple[ErrorCode, int]:
    ((part,),) = [topic.partition_responses for topic in raw.answer().responses]
    return ErrorCode(part.error_code), part.base_offset


def sizes(broker: Broker, topic: str) -> list[tuple[Codec, int]]:
    async def look(real: RealBroker) -> list[tuple[Codec, int]]:
        log = real.parts.replicas.partitions[topic, 0].log
        data = read(log, log.log_start, 1 << 30, Bound.END).records
        return [(view.codec, int(view.count)) for view in iter_batches(bytes(data))]

    return broker.call(look)


def serves(broker: Broker) -> bool:
    with Raw(broker.bootstrap) as other:
        return len(other.ask(ApiKey.METADATA, 9, MetadataRequest(topics=())).brokers) == 1


def reconfigure(broker: Broker, topic: str) -> None:
    async def change(real: RealBroker) -> None:
        log = real.parts.replicas.partitions[topic, 0].log
        log.reconfigure(log.config)

    broker.call(change)


def resign(broker: Broker, topic: str) -> None:
    async def change(real: RealBroker) -> None:
        real.parts.replicas.partitions[topic, 0].leads = False

    broker.call(change)


@pytest.mark.parametrize(
    ("stored_as", "sent_as"), [("gzip", Codec.NONE), ("lz4", Codec.GZIP), ("producer", Codec.GZIP)]
)
def test_others_are_served_meanwhile_and_order_is_kept(
    broker: Broker, gate: Gate, stored_as: str, sent_as: Codec
) -> None:
    topic = name()
    broker.create_topic(topic, 1, compression_type=stored_as)
    records = long_batch(sent_as)
    gate.elsewhere = 0
    with Raw(broker.bootstrap) as raw:
        send(raw, topic, records)
        send(raw, topic, short_batch())
        assert gate.reached.wait(WAIT)
        assert serves(broker)
        assert sizes(broker, topic) == []
        gate.open.set()
        assert produced(raw) == (ErrorCode.NONE, 0)
        assert produced(raw) == (ErrorCode.NONE, 10)
    expected = Codec[stored_as.upper()] if stored_as != "producer" else sent_as
    assert sizes(broker, topic)[0] == (expected, 10)
    assert gate.elsewhere < LOOP_BYTES


def test_a_short_batch_needs_no_thread(broker: Broker, gate: Gate) -> None:
    topic = name()
    broker.create_topic(topic, 1, compression_type="gzip")
    gate.open.set()
    with Raw(broker.bootstrap) as raw:
        send(raw, topic, short_batch())
        assert produced(raw) == (ErrorCode.NONE, 0)
    assert gate.elsewhere > 0
    assert not gate.reached.is_set()


@pytest.mark.parametrize(
    ("change", "code"),
    [(reconfigure, ErrorCode.LEADER_NOT_AVAILABLE), (resign, ErrorCode.NOT_LEADER_OR_FOLLOWER)],
)
def test_what_changes_meanwhile_counts(broker: Broker, gate: Gate, change: Any, code: ErrorCode) -> None:
    topic = name()
    broker.create_topic(topic, 1, compression_type="gzip")
    with Raw(broker.bootstrap) as raw:
        send(raw, topic, long_batch(Codec.NONE))
        assert gate.reached.wait(WAIT)
        change(broker, topic)
        gate.open.set()
        assert produced(raw)[0] == code
    assert sizes(broker, topic) == []


def test_a_refused_batch_is_refused_by_its_own_reason(broker: Broker, gate: Gate) -> None:
    topic = name()
    broker.create_topic(topic, 1, compression_type="lz4")
    gate.open.set()
    damaged = bytearray(long_batch(Codec.GZIP, 30_000_000))
    damaged[-1] ^= 1
    with Raw(broker.bootstrap) as raw:
        send(raw, topic, bytes(damaged))
        assert produced(raw)[0] == ErrorCode.CORRUPT_MESSAGE
        send(raw, topic, long_batch(Codec.GZIP, 70_000_000))
        assert produced(raw)[0] == ErrorCode.MESSAGE_TOO_LARGE
    assert sizes(broker, topic) == []


def test_a_producer_that_sends_and_closes_loses_nothing(broker: Broker, gate: Gate) -> None:
    topic = name()
    broker.create_topic(topic, 1, compression_type="gzip")
    with Raw(broker.bootstrap) as raw:
        send(raw, topic, long_batch(Codec.NONE), acks=0)
        assert gate.reached.wait(WAIT)
    gate.open.set()
    with Raw(broker.bootstrap) as raw:
        while not sizes(broker, topic):
            assert serves(broker)
        send(raw, topic, short_batch())
        assert produced(raw) == (ErrorCode.NONE, 10)


def test_a_transaction_that_ends_meanwhile_gets_no_more_records(transacting: Broker, gate: Gate) -> None:
    """The partition is verified after the check: a verification from before would be out of date."""
    topic = name()
    transacting.create_topic(topic, 1, compression_type="gzip")
    with Raw(transacting.bootstrap) as raw, Raw(transacting.bootstrap) as other:
        ident, epoch = txn_kit.init(other, topic)
        assert txn_kit.add(other, topic, ident, epoch, 0, topic=topic) == ["NONE"]
        records = long_batch(
            Codec.NONE, producer_id=ident, producer_epoch=epoch, base_sequence=0, is_transactional=True
        )
        raw.send(ApiKey.PRODUCE, 9, txn_kit.produce_request(topic, records, topic=topic))
        assert gate.reached.wait(WAIT)
        assert txn_kit.end(other, topic, ident, epoch, True, 3)[0] == "NONE"
        gate.open.set()
        assert produced(raw)[0] in (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH)


def test_a_search_by_time_inflates_on_a_thread(broker: Broker, gate: Gate) -> None:
    topic = name()
    broker.create_topic(topic)
    gate.open.set()
    with Raw(broker.bootstrap) as raw:
        send(raw, topic, long_batch(Codec.GZIP, timestamp=77))
        assert produced(raw) == (ErrorCode.NONE, 0)
        gate.open.clear()
        gate.reached.clear()
        gate.elsewhere = 0
        wish = ListOffsetsPartition(partition_index=0, timestamp=5)
        raw.send(
            ApiKey.LIST_OFFSETS,
            7,
            ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wish,)),)),
        )
        assert gate.reached.wait(WAIT)
        assert serves(broker)
        gate.open.set()
        ((part,),) = [each.partitions for each in raw.answer().topics]
        assert (part.error_code, part.timestamp, part.offset) == (0, 77, 0)
    assert gate.elsewhere < LOOP_BYTES
