"""Transactions beside Apache Kafka 3.9.1, with the same librdkafka client.

Kafka answers EndTxn before it has written the markers. A producer that begins the next transaction at once finds the
one before incomplete, gets CONCURRENT_TRANSACTIONS, and tries again after a pause: librdkafka waits 20 ms when it adds
partitions, and retry.backoff.ms, 100 ms, when it adds the offsets of a group. ixion has written the markers when it
answers, so its clients never pause. In a copy of 100 records a transaction nearly all of Kafka's time
is that pause (seen in librdkafka's own log: 122 ms of 125 ms), so a ratio of it says little about the brokers' work.
Therefore each is measured with and without:

- "one after the other": what an application gets that does nothing else.
- "8 producers at once": one pauses while others go on, so what counts is how much a broker can do.
- "copy": as librdkafka comes, with its pause of 100 ms; and with a pause of 1 ms, by which Kafka does best.
- "copy, 5,000 records a transaction": the pause of 1 ms is paid once for so many that it is lost among them.
- the broker's processor time, which knows no pauses.
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
PRODUCERS = 8
PAUSE_MS = 1
COPIES = {  # records a transaction, pause in ms
    "copy": (100, None),
    "copy-eager": (100, PAUSE_MS),
    "copy-large": (5_000, PAUSE_MS),
}


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
        rows["txn-many"] = fresh(clients.transactions_at_once, where, "out", int(2_000 * scale), PRODUCERS)
        fresh(clients.fill, where, "in", int(100_000 * scale) + clients.WARM_COPIES * 5_000)
        for key, (at_once, pause_ms) in COPIES.items():
            # As many transactions as the pauses of the slowest leave time for.
            count = int((100 if at_once == 100 else 20) * scale) + clients.WARM_COPIES
            rows[key] = fresh(clients.copy, where, "in", "copy", count, at_once, pause_ms)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.2 if session.quick else 1.0
    return {OURS: partial(measure, ixion, scale), KAFKA: partial(measure, apache_kafka, scale)}


ROWS = (
    *(
        Row(key=f"txn-{count}", label=f"transactions of {label}, one after the other", unit="1/s")
        for count, label in SIZES.items()
    ),
    Row(key="txn-many", label=f"transactions of 1 record, {PRODUCERS} producers at once", unit="1/s"),
    Row(key="copy", label="exactly-once copy, 100 records a transaction, librdkafka's pauses", unit="records/s"),
    Row(key="copy-eager", label="exactly-once copy, 100 records a transaction, pauses of 1 ms", unit="records/s"),
    Row(key="copy-large", label="exactly-once copy, 5,000 records a transaction, pauses of 1 ms", unit="records/s"),
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
