"""Queues beside Apache Kafka 4.3.0: both brokers, and our own share consumer with either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients, queue_clients
from benchmarks.loads.broker_servers import Server, apache_kafka_4, ixion

OURS, KAFKA = "ixion", "Apache Kafka 4.3.0"
SETTINGS = {"group.share.max.delivery.count.limit": "10"}


def measure(
    start: Callable[[Mapping[str, str]], AbstractContextManager[Server]], records: int, jobs: int, releases: int
) -> Mapping[str, float]:
    with start(SETTINGS) as server:
        where = server.bootstrap
        fresh(broker_clients.first_ack, where)
        first = fresh(queue_clients.first_record, where)
        before = server.cpu_seconds()
        one = fresh(queue_clients.drain, where, records, 1)
        cpu = (server.cpu_seconds() - before) / records * 1e6
        eight = fresh(queue_clients.drain, where, records, 8)
        worker, acknowledged = fresh(queue_clients.worker, where, jobs)
        median, rare = fresh(queue_clients.release, where, releases)
    return {
        "first": first,
        "one": one,
        "cpu": cpu,
        "eight": eight,
        "worker": worker,
        "ack": acknowledged,
        "release": median,
        "release99": rare,
    }


def contenders(session: Session) -> Mapping[str, Contender]:
    sizes = (20_000, 200, 20) if session.quick else (300_000, 2_000, 200)
    return {OURS: partial(measure, ixion, *sizes), KAFKA: partial(measure, apache_kafka_4, *sizes)}


ROWS = (
    Row(key="first", label="first record of a new group", unit="ms"),
    Row(key="one", label="records of 100 B taken and accepted by one member", unit="1/s"),
    Row(key="cpu", label="broker's processor time per record, written and taken", unit="µs"),
    Row(key="eight", label="the same by eight members on one partition, in one process", unit="1/s"),
    Row(key="worker", label="a worker that holds one job at a time", unit="1/s"),
    Row(key="ack", label="one acknowledgement, median", unit="ms"),
    Row(key="release", label="release to redelivery, median", unit="ms"),
    Row(key="release99", label="release to redelivery, 99 of 100", unit="ms"),
)


def goal(key: str, *, least: float | None = None, most: float | None = None) -> Goal:
    label = next(row.label for row in ROWS if row.key == key)
    return Goal(label=label, value=(key, OURS), base=(key, KAFKA), at_least=least, at_most=most)


BENCHMARK = Benchmark(
    name="queues",
    title="Queues beside Apache Kafka",
    rows=ROWS,
    goals=(
        goal("one", least=1.5),
        goal("worker", least=2.0),
        goal("ack", most=0.6),
        Goal(label="first record of a new group", value=("first", OURS), base=1_000.0, at_most=1.0),
        Goal(label="release to redelivery, 99 of 100", value=("release99", OURS), base=20.0, at_most=1.0),
    ),
    baseline=KAFKA,
    contenders=contenders,
)
