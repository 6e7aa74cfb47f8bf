"""A secured broker beside Apache Kafka 3.9.1: TLS 1.3 with the same cipher, logins by SCRAM, 1,000 rules, quotas.

The clients are those of `broker`, librdkafka in processes of their own. Logins come one after the other from a client
that has derived its key beforehand. A throttled client always has more to send or to read; its rate counts once the
burst that the quota allows is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads import secured_clients
from benchmarks.loads.secured_servers import (
    MECHANISM,
    PASSWORD,
    QUOTA,
    SLOW,
    USER,
    Secured,
    apache_kafka,
    ixion,
)

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
SIZES = {100: "100 B", 1000: "1 KB"}
MB_OF = {100: 30, 1000: 150}  # values of one measurement
LOGINS = 1_000
THROTTLED_S = 12.0
SOURCE = 40_000  # records of 1 KB for the throttled consumer: more than it can read
CIPHER = "TLSv1.3 TLS_AES_256_GCM_SHA384"


def measure(start: Callable[[], AbstractContextManager[Secured]], scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    with start() as secured:
        assert secured.cipher() == CIPHER, secured.cipher()
        server, tls = secured.server, secured.tls()
        topics = {f"tls{size}": 1 for size in SIZES} | {"rules": 1, "slow": 1, "source": 1}
        fresh(clients.create_topics, server.bootstrap, topics)
        where, produced = secured.address("SSL"), 0.0
        before = server.cpu_seconds()
        for size in SIZES:
            count = int(MB_OF[size] * 1_000_000 * scale) // size
            rows[f"produce-{size}"] = fresh(clients.produce, where, f"tls{size}", 1, size, count, 1, tls)
            produced += count * size / 1e6
        rows["cpu-produce"] = (server.cpu_seconds() - before) / produced * 1_000
        before = server.cpu_seconds()
        for size in SIZES:
            count = int(MB_OF[size] * 1_000_000 * scale) // size
            rows[f"consume-{size}"] = fresh(clients.consume, where, f"tls{size}", 1, count, tls)
        rows["cpu-consume"] = (server.cpu_seconds() - before) / produced * 1_000
        count = int(LOGINS * scale)
        before = server.cpu_seconds()
        port = secured.ports["SASL_PLAINTEXT"]
        rows["logins"] = fresh(secured_clients.logins, port, MECHANISM, USER, PASSWORD, count)
        rows["cpu-login"] = (server.cpu_seconds() - before) / (count + secured_clients.WARM) * 1e6
        records = int(MB_OF[1000] * 1_000 * scale)
        where = secured.address("SASL_PLAINTEXT")
        rows["rules"] = fresh(clients.produce, where, "rules", 1, 1000, records, 1, secured.login())
        seconds = max(THROTTLED_S * scale, 5.0)
        rate = fresh(secured_clients.throttled_produce, server.bootstrap, "slow", SLOW, seconds)
        rows["throttled-produce"] = rate / QUOTA * 100
        small = {"batch.size": str(secured_clients.BATCH)}  # a fetch gives a batch at least, however large
        fresh(clients.produce, server.bootstrap, "source", 1, 1_000, SOURCE, 1, small)
        rate = fresh(secured_clients.throttled_consume, server.bootstrap, "source", SLOW, seconds)
        rows["throttled-consume"] = rate / QUOTA * 100
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.2 if session.quick else 1.0
    return {OURS: partial(measure, ixion, scale), KAFKA: partial(measure, apache_kafka, scale)}


ROWS = (
    *(Row(key=f"produce-{size}", label=f"produce {label} over TLS 1.3", unit="MB/s") for size, label in SIZES.items()),
    *(Row(key=f"consume-{size}", label=f"consume {label} over TLS 1.3", unit="MB/s") for size, label in SIZES.items()),
    Row(key="cpu-produce", label="broker's processor time per MB produced over TLS", unit="ms"),
    Row(key="cpu-consume", label="broker's processor time per MB consumed over TLS", unit="ms"),
    Row(key="logins", label="connections that log in by SCRAM-SHA-512, one after the other", unit="1/s"),
    Row(key="cpu-login", label="broker's processor time per such connection", unit="µs"),
    Row(key="rules", label="produce 1 KB by a user with 1,000 rules in force", unit="MB/s"),
    Row(key="throttled-produce", label="rate of a throttled producer", unit="% of its quota"),
    Row(key="throttled-consume", label="rate of a throttled consumer", unit="% of its quota"),
)


def faster(key: str) -> Goal:
    label = next(row.label for row in ROWS if row.key == key)
    return Goal(label=label, value=(key, OURS), base=(key, KAFKA), at_least=1.0)


def near(key: str) -> tuple[Goal, Goal]:
    label = next(row.label for row in ROWS if row.key == key)
    return (
        Goal(label=f"{label}, not less", value=(key, OURS), base=100.0, at_least=0.95),
        Goal(label=f"{label}, not more", value=(key, OURS), base=100.0, at_most=1.05),
    )


BENCHMARK = Benchmark(
    name="security",
    title="A secured broker beside Apache Kafka",
    rows=ROWS,
    goals=(
        *(faster(row.key) for row in ROWS if row.unit in ("MB/s", "1/s")),
        *near("throttled-produce"),
        *near("throttled-consume"),
    ),
    baseline=KAFKA,
    contenders=contenders,
    rounds=3,
)
