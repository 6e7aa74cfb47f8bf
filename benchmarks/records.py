"""Building, reading and validating record batches beside the Python clients.

A batch is 16 kB, what producers fill by default, or 1 MB, the most a topic takes by default, of records without a key.
Everyone is asked for the same through its own interface: build = append every
record, then close the batch; iterate = one object for every record; read = the same and its key, value, offset and
timestamp. aiokafka's is its compiled code. confluent-kafka does not show its batches, so it produces to the mock broker
inside librdkafka: its number holds the queue and the loopback too.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from confluent_kafka import Producer

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.language.records.validate import TopicRules, validate_produce

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that newer Pythons frown upon
    from kafka.record.default_records import DefaultRecordBatch as PyBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as PyBuilder

OURS, AIO, PY, CONFLUENT = "ixion", "aiokafka", "kafka-python", "confluent-kafka"
NOW = 1_700_000_000_000
COMPRESSED = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
RULES = TopicRules(max_batch_bytes=1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """So many records of so many bytes in a batch."""

    label: str
    size: int
    count: int

    @property
    def value(self) -> bytes:
        return b"x" * self.size


LOADS = {
    "100": Load(label="100 bytes", size=100, count=145),
    "1k": Load(label="1 kB", size=1_000, count=16),
    "1k-1m": Load(label="1 kB, batch of 1 MB", size=1_000, count=1_000),
}


def per_record(work: Callable[[], object], load: Load, seconds: float) -> float:
    """Nanoseconds per record of the fastest of the runs that fit into `seconds`."""
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter_ns()
        work()
        best = min(best, (time.perf_counter_ns() - start) / load.count)
    return best


def our_batch(load: Load, value: bytes, codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(codec=codec)
    for number in range(load.count):
        builder.append(None, value, (), NOW + number)
    return builder.build()


def their_batch(make: Any, load: Load, value: bytes) -> Any:
    builder = make(2, 0, 0, -1, -1, -1, 1 << 24)
    for number in range(load.count):
        builder.append(number, NOW + number, None, value, [])
    return builder.build()


def iterate(view: Callable[[bytes], Iterable[Any]], data: bytes) -> None:
    for _ in view(data):
        pass


def read(view: Callable[[bytes], Iterable[Any]], data: bytes) -> None:
    for record in view(data):
        _ = record.key, record.value, record.offset, record.timestamp


def ours(seconds: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    for key, load in LOADS.items():
        data = our_batch(load, load.value)
        rows |= {
            f"build-{key}": per_record(partial(our_batch, load, load.value), load, seconds),
            f"iterate-{key}": per_record(partial(iterate, BatchView, data), load, seconds),
            f"read-{key}": per_record(partial(read, BatchView, data), load, seconds),
            f"validate-{key}": per_record(partial(validate_produce, data, RULES, NOW), load, seconds),
        }
    load = LOADS["100"]
    for codec in COMPRESSED:
        data = our_batch(load, load.value, codec)
        rows[f"validate-{codec.name}"] = per_record(partial(validate_produce, data, RULES, NOW), load, seconds)
    return rows


def theirs(builder: Any, batch: Any, seconds: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    for key, load in LOADS.items():
        data = bytes(their_batch(builder, load, load.value))
        rows |= {
            f"build-{key}": per_record(partial(their_batch, builder, load, load.value), load, seconds),
            f"iterate-{key}": per_record(partial(iterate, batch, data), load, seconds),
            f"read-{key}": per_record(partial(read, batch, data), load, seconds),
        }
    return rows


def librdkafka(seconds: float) -> Mapping[str, float]:
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0, "linger.ms": 1})
    rows: dict[str, float] = {}

    def produce(load: Load, value: bytes) -> None:
        for number in range(load.count):
            producer.produce("bench", value, timestamp=NOW + number)
        producer.flush()

    large = LOADS["1k-1m"]
    produce(large, b"the topic exists now")
    rows["build-1k-1m"] = per_record(partial(produce, large, large.value), large, seconds)
    small = Load(label="100 bytes", size=100, count=10_000)
    rows["build-100"] = per_record(partial(produce, small, small.value), small, seconds)
    return rows


def contenders(session: Session) -> dict[str, Contender]:
    seconds = 0.05 if session.quick else 0.4
    return {
        OURS: lambda: ours(seconds),
        AIO: lambda: theirs(AioBuilder, AioBatch, seconds),
        PY: lambda: theirs(PyBuilder, PyBatch, seconds),
        CONFLUENT: lambda: librdkafka(seconds),
    }


def row(kind: str, key: str, *, charted: bool = True) -> Row:
    label = LOADS[key].label if key in LOADS else f"{key.lower()}, 100 bytes"
    words = {"read": "iterate and read"}
    return Row(key=f"{kind}-{key}", label=f"{words.get(kind, kind)}, {label}", unit="ns/record", charted=charted)


def twice_as_fast(kind: str, key: str) -> Goal:
    name = f"{kind}-{key}"
    label = f"{kind}, {LOADS[key].label}: twice aiokafka's speed"
    return Goal(label=label, value=(name, OURS), base=(name, AIO), at_most=0.5)


BENCHMARK = Benchmark(
    name="records",
    title="Record batches",
    rows=(
        *(row(kind, key) for kind in ("build", "iterate", "read", "validate") for key in LOADS),
        *(row("validate", codec.name, charted=False) for codec in COMPRESSED),
    ),
    goals=(
        *(twice_as_fast(kind, key) for kind in ("build", "iterate") for key in LOADS),
        Goal(label="validate 5 million records a second", value=("validate-100", OURS), base=200.0, at_most=1.0),
    ),
    baseline=AIO,
    contenders=contenders,
)
