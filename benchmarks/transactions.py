"""Transactions beside Apache Kafka 3.9.1: the same librdkafka client, one transaction after the other.

Kafka answers EndTxn before it has written the markers, and tells a client that goes on too soon to wait.
How long such a pause is lies with the client, so another client may see other ratios; how much of the difference the
pauses are was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import transaction_clients as clients
from benchmarks.loads.broker_clients import create_topics, first_ack
from benchmarks.loads.broker_servers import Server, apache_kafka, ixion

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
SIZES = {1: "1 record", 100: "100 records"}
AT_ONCE = 100


def measure(start: Callable[[], AbstractContextManager[Server]], scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    with start() as server:
        where = server.bootstrap
        fresh(first_ack, where)
        fresh(create_topics, where, {"out": 1, "in": 1, "copy": 1})
        before = server.cpu_seconds()
        for records in SIZES:
            rows[f"txn-{records}"] = fresh(clients.transactions, where, "out", int(500 * scale), records)
        done = 2 * (int(500 * scale) + clients.WARM)
        rows["cpu"] = (server.cpu_seconds() - before) / done * 1000
        count = int(10_000 * scale) + clients.WARM_COPIES * AT_ONCE
        fresh(clients.fill, where, "in", count)
        rows["copy"] = fresh(clients.copy, where, "in", "copy", count, AT_ONCE)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.2 if session.quick else 1.0
    return {OURS: partial(measure, ixion, scale), KAFKA: partial(measure, apache_kafka, scale)}


ROWS = (
    *(Row(key=f"txn-{count}", label=f"transactions of {label}", unit="1/s") for count, label in SIZES.items()),
    Row(key="copy", label=f"exactly-once copy, {AT_ONCE} records a transaction", unit="records/s"),
    Row(key="cpu", label="broker's processor time per transaction", unit="ms"),
)

BENCHMARK = Benchmark(
    name="transactions",
    title="Transactions beside Apache Kafka",
    rows=ROWS,
    goals=tuple(
        Goal(label=row.label, value=(row.key, OURS), base=(row.key, KAFKA), at_least=1.0)
        for row in ROWS
        if row.key != "cpu"
    ),
    baseline=KAFKA,
    contenders=contenders,
)
