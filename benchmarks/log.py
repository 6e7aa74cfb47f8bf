"""The log beside Apache Kafka's own: UnifiedLog, in a JVM, on the same disk.

Append: one batch after the other as a leader, with all checks (CRC, every record looked at) and the write to the page
cache; no sync on either side. Read: 1 MB at a time through all of a cached log; Kafka's side copies into one buffer
that it keeps, ours into a fresh one each time, as a caller gets it. Find: the place of 1 MB at a random offset, all
that there is to do before sendfile. These three are in processor time of the one thread that does the work, so that
neighbours on the machine do not count (nor does Kafka's garbage collector).

Recovery: 1 GiB after an unclean stop, every batch checked, indexes built anew. Opening: 2,000 partitions that were
closed cleanly, a few records in each, and what one of them then takes of the heap; Kafka's index files are mapped
outside of its heap and not counted.

Both sides use one thread. Kafka's compiler is warm: the first round is thrown away.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.framework import Benchmark, Contender, Goal, JavaPeer, Row, Session
from ixion.broker.log.config import LogConfig
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.files import Files
from ixion.broker.log.log import Log
from ixion.broker.log.log_loader import open_log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.reader import read, read_slice
from ixion.broker.log.view import Bound
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
RECORDS = {"100 B": 100, "1 KB": 1000, "16 KB": 16_000}
BATCHES = {"16 KB": 16_384, "128 KB": 131_072, "1 MB": 1_048_576}
CONFIG = LogConfig(max_message_bytes=4 << 20)
APPENDED = 64 << 20  # bytes per append row and round
FETCH = 1 << 20


def now_ms() -> int:
    return int(time.time() * 1000)


def build_batch(record_size: int, batch_size: int) -> bytes:
    builder = BatchBuilder(max_bytes=batch_size)
    value = os.urandom(record_size)
    while builder.append(b"key", value, timestamp=now_ms()):
        pass
    return builder.build()


def shapes() -> Iterator[tuple[str, int, int]]:
    for record, record_size in RECORDS.items():
        for batch, batch_size in BATCHES.items():
            if batch_size > record_size + 100:
                yield f"{record} in {batch}", record_size, batch_size


def open_at(folder: Path, *, clean: bool = False) -> Log:
    return open_log(
        directory=DirectoryState(str(folder.parent)),
        folder=str(folder),
        topic="bench",
        partition=0,
        config=CONFIG,
        files=Files(),
        clock_ms=now_ms,
        clean=clean,
    )


def append(folder: Path, batch: bytes, count: int) -> float:
    log = open_at(folder)
    start = time.thread_time()
    for _ in range(count):
        log.append_as_leader(batch, 0)
    seconds = time.thread_time() - start
    log.abandon()
    shutil.rmtree(folder)
    return len(batch) * count / seconds / 1e6


def read_through(folder: Path, total: int) -> float:
    log = open_at(folder, clean=True)
    for segment in log.segments:
        segment.trusted = True  # Kafka checks nothing here either; a first read of ours checks the CRC
    spent = 0.0
    done = offset = 0
    while done < total:
        start = time.thread_time()
        data = read(log, offset, FETCH, Bound.END)
        spent += time.thread_time() - start
        done += len(data.records)
        for view in iter_batches(data.records):
            offset = int(view.next_offset)
        if offset >= log.end_offset:
            offset = 0
    log.abandon()
    return done / spent / 1e6


def find(folder: Path, count: int) -> float:
    """Microseconds."""
    log = open_at(folder, clean=True)
    for segment in log.segments:
        segment.trusted = True
    found = 0
    start = time.thread_time()
    for number in range(count):
        found += read_slice(log, number * 7919 % log.end_offset, FETCH, Bound.END).size
    seconds = time.thread_time() - start
    assert found
    log.abandon()
    return seconds / count * 1e6


def fill(folder: Path, size: int) -> None:
    log = open_at(folder)
    batch = build_batch(1000, 16_384)
    for _ in range(size // len(batch)):
        log.append_as_leader(batch, 0)
    log.close()


def recover(folder: Path) -> float:
    start = time.perf_counter()
    log = open_at(folder, clean=False)
    seconds = time.perf_counter() - start
    log.abandon()
    return seconds


def make_partitions(root: Path, count: int) -> None:
    manager = LogManager([str(root)], clock_ms=now_ms)
    manager.load()
    batch = build_batch(100, 1000)
    for number in range(count):
        manager.create("bench", number).append_as_leader(batch, 0)
    manager.close()


def open_partitions(root: Path) -> tuple[float, float]:
    """Seconds, and kB of memory per partition."""
    (root / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}')
    manager = LogManager([str(root)], clock_ms=now_ms)
    gc.collect()
    before = resident_bytes()
    start = time.perf_counter()
    manager.load()
    seconds = time.perf_counter() - start
    gc.collect()
    memory = (resident_bytes() - before) / len(manager.logs) / 1000
    manager.abandon()
    return seconds, memory


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ixion-bench-") as name:
        yield Path(name)


def contenders(session: Session) -> Mapping[str, Contender]:
    root = session.enter(scratch())
    appended = APPENDED // 8 if session.quick else APPENDED
    whole = (64 << 20) if session.quick else (1 << 30)
    finds = 2000 if session.quick else 20_000
    partitions = 100 if session.quick else 2000
    peer = session.enter(JavaPeer("LogPeer", "kafka-3.9.1", heap="1g"))
    batches = {}
    for label, record_size, batch_size in shapes():
        path = root / f"{record_size}-{batch_size}.batch"
        path.write_bytes(build_batch(record_size, batch_size))
        batches[label] = path
    fill(root / "big" / "bench-0", whole)
    shutil.copytree(root / "big" / "bench-0", root / "theirs" / "bench-0")
    make_partitions(root / "many", partitions)
    shutil.copytree(root / "many", root / "their-many")

    def ours() -> Mapping[str, float]:
        results = {}
        for label, path in batches.items():
            batch = path.read_bytes()
            results[f"append {label}"] = append(root / "a" / "bench-0", batch, max(appended // len(batch), 1))
        results["read"] = read_through(root / "big" / "bench-0", whole)
        results["find"] = find(root / "big" / "bench-0", finds)
        results["recover"] = recover(root / "big" / "bench-0")
        results["open"], results["memory"] = open_partitions(root / "many")
        return results

    def theirs() -> Mapping[str, float]:
        results = {}
        for label, path in batches.items():
            count = max(appended // path.stat().st_size, 1)
            results[f"append {label}"] = peer.ask("append", root / "b" / "bench-0", path, count)["MB/s"]
        results["read"] = peer.ask("read", root / "theirs" / "bench-0", FETCH, whole)["MB/s"]
        results["find"] = peer.ask("find", root / "theirs" / "bench-0", FETCH, finds)["us"]
        results["recover"] = peer.ask("recover", root / "theirs" / "bench-0")["s"]
        answer = peer.ask("open", root / "their-many")
        results["open"], results["memory"] = answer["s"], answer["kB"]
        return results

    warm: Callable[[], Mapping[str, float]] = theirs
    warm()
    return {OURS: ours, KAFKA: theirs}


BENCHMARK = Benchmark(
    name="log",
    title="The log on disk",
    rows=(
        *(Row(key=f"append {label}", label=f"append {label} batches", unit="MB/s") for label, _, _ in shapes()),
        Row(key="read", label="read 1 MB at a time, cached", unit="MB/s"),
        Row(key="find", label="find 1 MB for sendfile", unit="µs"),
        Row(key="recover", label="recover 1 GiB", unit="s"),
        Row(key="open", label="open 2,000 partitions", unit="s"),
        Row(key="memory", label="memory of an idle partition", unit="kB"),
    ),
    goals=(
        Goal(label="append 1 KB records, 1 MB batches", value=("append 1 KB in 1 MB", OURS), base=1000.0, at_least=1.0),
        Goal(
            label="append 100 B records, 16 KB batches",
            value=("append 100 B in 16 KB", OURS),
            base=("append 100 B in 16 KB", KAFKA),
            at_least=1.0,
        ),
        Goal(label="read", value=("read", OURS), base=2000.0, at_least=1.0),
        Goal(label="recovery", value=("recover", OURS), base=("recover", KAFKA), at_most=1.0),
        Goal(label="opening", value=("open", OURS), base=("open", KAFKA), at_most=1.0),
        Goal(label="memory of an idle partition", value=("memory", OURS), base=20.0, at_most=1.0),
    ),
    baseline=KAFKA,
    contenders=contenders,
    rounds=3,
)
