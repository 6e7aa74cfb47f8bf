"""A broker beside Apache Kafka 3.9.1: same clients (librdkafka), same flush policy (none on append), one node each.

In every round each broker is started anew with an empty directory and rests for a moment after its first record; then
clients, each in a process of its own, produce and consume. Processor time and memory are those of the broker's process
alone. Values are random bytes and not compressed. How long a start takes is measured by `start`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import Server, apache_kafka, ixion

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
SIZES = {100: "100 B", 1000: "1 KB"}
ACKS = {1: "acks=1", -1: "acks=all"}
PARTITIONS = {1: "1 partition", 6: "6 partitions"}
MB_OF = {100: 60, 1000: 250}  # values of one measurement
REST_S = 2.0


def cases() -> Iterator[tuple[int, int, int]]:
    for size in SIZES:
        for partitions in PARTITIONS:
            for acks in ACKS:
                yield size, partitions, acks


def measure(start: Callable[[], AbstractContextManager[Server]], scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    with start() as server:
        where = server.bootstrap
        fresh(clients.first_ack, where)
        time.sleep(REST_S)
        rows["idle"] = server.resident_mb()
        names = {f"t{size}-{parts}-{acks}": parts for size, parts, acks in cases()}
        fresh(clients.create_topics, where, {"sync": 1, **names})
        count = int(5000 * scale)
        rows["sync-p50"], rows["sync-p99"] = fresh(clients.synchronous, where, "sync", count, 1)
        rows["sync-all-p50"], rows["sync-all-p99"] = fresh(clients.synchronous, where, "sync", count, -1)
        produced = cpu = 0.0
        for size, parts, acks in cases():
            topic = f"t{size}-{parts}-{acks}"
            records = int(MB_OF[size] * 1_000_000 * scale) // size
            before = server.cpu_seconds()
            rows[f"produce-{size}-{parts}-{acks}"] = fresh(clients.produce, where, topic, parts, size, records, acks)
            cpu += server.cpu_seconds() - before
            produced += records * size / 1e6
            if acks == 1:
                rows[f"consume-{size}-{parts}"] = fresh(clients.consume, where, topic, parts, records)
        rows["cpu"] = cpu / produced * 1000
        rows["loaded"] = server.resident_mb(peak=True)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.1 if session.quick else 1.0
    return {OURS: partial(measure, ixion, scale), KAFKA: partial(measure, apache_kafka, scale)}


ROWS = (
    Row(key="idle", label="memory, idle", unit="MB"),
    Row(key="sync-p50", label="synchronous produce, acks=1, median", unit="µs"),
    Row(key="sync-p99", label="synchronous produce, acks=1, p99", unit="µs"),
    Row(key="sync-all-p50", label="synchronous produce, acks=all, median", unit="µs"),
    Row(key="sync-all-p99", label="synchronous produce, acks=all, p99", unit="µs"),
    *(
        Row(
            key=f"produce-{size}-{parts}-{acks}",
            label=f"produce {SIZES[size]}, {PARTITIONS[parts]}, {ACKS[acks]}",
            unit="MB/s",
        )
        for size, parts, acks in cases()
    ),
    *(
        Row(key=f"consume-{size}-{parts}", label=f"consume {SIZES[size]}, {PARTITIONS[parts]}", unit="MB/s")
        for size in SIZES
        for parts in PARTITIONS
    ),
    Row(key="cpu", label="broker's processor time per MB produced", unit="ms"),
    Row(key="loaded", label="memory, at its peak under load", unit="MB"),
)


def at_most(key: str, ratio: float) -> Goal:
    label = next(row.label for row in ROWS if row.key == key)
    return Goal(label=label, value=(key, OURS), base=(key, KAFKA), at_most=ratio)


def at_least(key: str) -> Goal:
    label = next(row.label for row in ROWS if row.key == key)
    return Goal(label=label, value=(key, OURS), base=(key, KAFKA), at_least=1.0)


BENCHMARK = Benchmark(
    name="broker",
    title="A broker beside Apache Kafka",
    rows=ROWS,
    goals=(
        *(at_most(key, 0.5) for key in ("sync-p50", "sync-p99", "sync-all-p50", "sync-all-p99")),
        *(at_least(row.key) for row in ROWS if row.unit == "MB/s"),
        at_most("idle", 0.15),
        at_most("loaded", 0.25),
        at_most("cpu", 1.0),
    ),
    baseline=KAFKA,
    contenders=contenders,
)
