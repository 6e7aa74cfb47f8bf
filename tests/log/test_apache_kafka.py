"""The other judge: Apache Kafka 3.9.1 itself reads what we wrote, and we read what it wrote.

One broker life fills a directory (all codecs, transactions, compaction). We load copies of it, clean and unclean, and
read all of it. Then we write logs of our own into that directory, DumpLogSegments reads every file of them, and the
broker starts on it again, made to recover everything, and serves our records. Then it is killed, and we recover what
it left.

The broker's part runs with the compiled package only: it takes half a minute, and the bytes that reach the disk are
the same both ways, which the other tests see to.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.jvm import run_java
from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.snapshot_trailer import MARK
from ixion.broker.log.view import Bound
from ixion.language.records.batches import iter_batches
from ixion.language.records.compression import Codec
from tests.log.support import batch, marker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
Stored = list[tuple[int, bytes | None, bytes | None]]

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="runs with the compiled package, see the module"
)


def now_ms() -> int:
    return int(time.time() * 1000)


@dataclass(slots=True)
class World:
    kafka: RealKafka
    data: Path
    seen: dict[str, Stored] = field(default_factory=dict)  # by a Java-checked client, before the broker stopped


def consume(bootstrap: str, topic: str, isolation: str = "read_committed") -> Stored:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: Stored = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if error := message.error():
            assert error.name() == "_PARTITION_EOF", error
            break
        found.append((message.offset() or 0, message.key(), message.value()))
    consumer.close()
    return found


def fill(kafka: RealKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    small = {"segment.bytes": "20000", "index.interval.bytes": "500"}
    compacted = {**small, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "5000"}
    topics = [NewTopic(f"codec-{codec}", 1, 1, config=small) for codec in CODECS]
    topics += [NewTopic("txn", 1, 1, config=small), NewTopic("compacted", 1, 1, config=compacted)]
    topics += [NewTopic("ours", 1, 1, config=small)]
    for future in admin.create_topics(topics).values():
        future.result(30)
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "compression.type": codec,
                "linger.ms": 1,
                "enable.idempotence": True,
            }
        )
        for number in range(400):
            producer.produce(f"codec-{codec}", b"value %d " % number * 10, b"key %d" % number, headers=[("h", b"x")])
            if number % 20 == 0:
                producer.flush()
        producer.flush()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "t", "linger.ms": 1})
    producer.init_transactions(30)
    for number in range(30):
        producer.begin_transaction()
        for part in range(5):
            producer.produce("txn", b"%d.%d" % (number, part) * 20, b"k")
        producer.flush()
        if number % 3:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    producer.begin_transaction()  # left open: an aborted one in the end, as the broker stops
    producer.produce("txn", b"open", b"k")
    producer.flush()
    producer.abort_transaction(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 1})
    for number in range(300):
        producer.produce("compacted", b"%d" % number * 10, b"key %d" % (number % 10))
        if number % 5 == 0:
            producer.flush()
    producer.flush()


def wait_for_compaction(kafka: RealKafka, folder: Path) -> None:
    deadline = time.monotonic() + 60
    while len(consume(kafka.bootstrap, "compacted")) > 150:
        assert time.monotonic() < deadline, "Apache Kafka did not compact"
        time.sleep(0.3)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    need("kafka-3.9.1")
    home = tmp_path_factory.mktemp("kafka")
    properties = {"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1", "log.segment.delete.delay.ms": "100"}
    kafka = RealKafka("3.9.1", home, heap="512m", properties=properties)
    world = World(kafka, home / "logs")
    with kafka:
        fill(kafka)
        wait_for_compaction(kafka, world.data)
        for topic in [*(f"codec-{codec}" for codec in CODECS), "txn", "compacted"]:
            world.seen[topic] = consume(kafka.bootstrap, topic)
    return world


def open_manager(path: Path) -> LogManager:
    manager = LogManager([str(path)], clock_ms=now_ms, config_of=lambda _: LogConfig(segment_bytes=20_000))
    manager.load()
    return manager


def committed(log: Log) -> Stored:
    """What a client at read_committed sees: no control records, no aborted ones."""
    log.raise_high_watermark(log.end_offset)
    found: Stored = []
    offset = log.log_start
    while True:
        data = read(log, offset, 5000, Bound.VISIBLE_STABLE)
        if not data.records:
            return found
        for view in iter_batches(data.records):
            aborted = any(
                txn.producer_id == view.producer_id and txn.first_offset <= view.base_offset <= txn.last_offset
                for txn in data.aborted or []
            )
            if not view.is_control and not (view.is_transactional and aborted):
                found += [(int(record.offset), record.key, record.value) for record in view.records()]
            offset = int(view.last_offset) + 1


@pytest.mark.parametrize("clean", [True, False])
def test_we_read_all_that_kafka_wrote(world: World, tmp_path: Path, clean: bool) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(world.data, copy)
    assert (copy / ".kafka_cleanshutdown").exists()
    if not clean:
        (copy / ".kafka_cleanshutdown").unlink()
        (copy / "recovery-point-offset-checkpoint").unlink()
    manager = open_manager(copy)
    assert not manager.unreadable
    meta = manager.directories[0].meta_properties()
    assert meta is not None
    assert (meta.version, meta.node_id, meta.cluster_id) == (1, 1, world.kafka.cluster_id)
    for topic, expected in world.seen.items():
        log = manager.logs[topic, 0]
        assert log.topic_id is not None
        assert committed(log) == expected, topic
    assert len(world.seen["codec-zstd"]) == 400
    assert len(world.seen["txn"]) == 100
    assert len(manager.logs["codec-none", 0].segments) > 1
    aborted = [txn for segment in manager.logs["txn", 0].segments for txn in segment.txn_index.entries()]
    assert len(aborted) == 11
    producers = manager.logs["codec-gzip", 0].producers.producers
    assert [entry.last_sequence for entry in producers.values()] == [399]
    manager.abandon()


def write_ours(log: Log) -> Stored:
    """Every codec, an idempotent producer, committed, aborted and interleaved transactions, several segments."""
    expected: Stored = []
    epoch = max(log.epochs.latest, 0)
    start = now_ms()
    for number in range(150):
        values = [b"%d.%d " % (number, part) * 8 for part in range(3)]
        data = batch(
            *values,
            key=b"k%d" % number,
            timestamp=start + number,
            producer=(77, 0, number * 3),
            codec=Codec(number % 5),
        )
        info = log.append_as_leader(data, epoch)
        expected += [(info.first_offset + part, b"k%d" % number, value) for part, value in enumerate(values)]
    for number in range(20):
        kept = number % 2 == 0
        for producer in (78, 79):
            data = batch(
                b"txn", timestamp=start + 200 + number, producer=(producer, 0, number), transactional=True, key=b"t"
            )
            info = log.append_as_leader(data, epoch)
            if kept == (producer == 78):
                expected.append((info.first_offset, b"t", b"txn"))
        for producer in (79, 78):
            end = marker(producer, 0, commit=kept == (producer == 78), timestamp=start + 200 + number)
            log.append_as_leader(end, epoch, Origin.COORDINATOR)
    return expected


def test_kafka_reads_all_that_we_wrote(world: World, tmp_path: Path) -> None:
    manager = open_manager(world.data)
    log = manager.logs["ours", 0]
    folder = Path(log.folder)
    log.reconfigure(LogConfig(segment_bytes=8_000, index_interval_bytes=500))
    expected = write_ours(log)
    appended = manager.logs["codec-none", 0].append_as_leader(batch(b"and one more", timestamp=now_ms()), 1)
    assert len(log.segments) > 2
    check_dump(manager, log)
    manager.close()
    check_files_after_close(folder)
    (world.data / ".kafka_cleanshutdown").unlink()  # so that the broker reads and checks every byte
    (world.data / "recovery-point-offset-checkpoint").unlink()
    with world.kafka as kafka:
        assert consume(kafka.bootstrap, "ours") == expected
        assert consume(kafka.bootstrap, "codec-none")[-1] == (appended.first_offset, b"k", b"and one more")
        uncommitted = consume(kafka.bootstrap, "ours", "read_uncommitted")
        assert len(uncommitted) == len(expected) + 20
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        producer.produce("ours", b"from Kafka", b"k")
        producer.flush()
        os.kill(kafka.pid, signal.SIGKILL)  # it leaves no marker, and index files of their full size
    output = (world.kafka.data_dir / "broker.out").read_text()
    complaints = [line for line in output.splitlines() if re.search(r"orrupt|invalid|Truncat|ERROR", line)]
    assert not [line for line in complaints if "ours" in line or "codec" in line], complaints
    assert not (world.data / ".kafka_cleanshutdown").exists()
    manager = open_manager(world.data)
    assert committed(manager.logs["ours", 0])[:-1] == expected
    assert committed(manager.logs["ours", 0])[-1][1:] == (b"k", b"from Kafka")
    manager.close()


def dump(*paths: Path, options: tuple[str, ...] = ()) -> str:
    arguments = (*options, "--files", ",".join(map(str, paths)))
    return run_java("kafka.tools.DumpLogSegments", *arguments, classpath=need("kafka-3.9.1"))


def check_dump(manager: LogManager, log: Log) -> None:
    """DumpLogSegments and we see the same in every kind of file."""
    log.roll()
    folder = Path(log.folder)
    logs = sorted(folder.glob("*.log"))
    text = dump(*logs, options=("--deep-iteration", "--print-data-log"))
    theirs = [
        (int(offset), int(timestamp), payload)
        for offset, timestamp, payload in re.findall(
            r"\| offset: (\d+) CreateTime: (\d+) keySize: \d+ valueSize: \d+ sequence: \d+ headerKeys: \[\] "
            r"key: \S+ payload: (.*)",
            text,
        )
    ]
    ours = []
    batches = 0
    for segment in log.segments:
        for view in iter_batches(segment.handle.read(segment.size, 0)):
            batches += 1
            if not view.is_control:
                ours += [(record.offset, record.timestamp, (record.value or b"").decode()) for record in view.records()]
    assert theirs == ours
    assert len(re.findall(r"^baseOffset: .* isvalid: true$", text, re.MULTILINE)) == batches
    assert text.count("endTxnMarker: ABORT") == text.count("endTxnMarker: COMMIT") == 20

    indexes = sorted(folder.glob("*index"))
    snapshots = sorted(folder.glob("*.snapshot"))
    assert any(MARK in path.read_bytes() for path in snapshots), "Kafka must read over what is ours"
    text = dump(*indexes, *snapshots)
    assert "Mismatches" not in text
    assert "not found" not in text.lower()
    for segment in log.segments:
        for offset, position in segment.index.entries():
            assert f"offset: {offset} position: {position}\n" in text
        for timestamp, offset in segment.time_index.entries():
            assert f"timestamp: {timestamp} offset: {offset}\n" in text
        for txn in segment.txn_index.entries():
            assert (
                f"version: 0 producerId: {txn.producer_id} firstOffset: {txn.first_offset} "
                f"lastOffset: {txn.last_offset} lastStableOffset: {txn.last_stable_offset}" in text
            )
    for producer in (77, 78, 79):
        entry = log.producers.producers[producer]
        assert re.search(
            rf"producerId: {producer} producerEpoch: 0 coordinatorEpoch: {entry.coordinator_epoch} .*"
            rf"lastTimestamp: {entry.last_timestamp} .*"
            rf"lastSequence: {entry.last_sequence} lastOffset: {entry.last_offset}",
            text,
        ), text[-3000:]


def check_files_after_close(folder: Path) -> None:
    for path in folder.glob("*.index"):
        assert path.stat().st_size % 8 == 0
    assert os.path.exists(folder / "leader-epoch-checkpoint")
