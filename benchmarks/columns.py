"""Reading a topic by batches, into columns and into Arrow, beside confluent-kafka: one ixion broker, one partition.

confluent-kafka has no columns: key, value, offset and timestamp of its messages are collected in lists, 10,000 messages
at a time, and made Arrow arrays where those are wanted. Every client reads in a process of its own. Rates per second of
processor time are those of the client's process with its threads, so that the broker and a busy machine do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads import column_clients
from benchmarks.loads.broker_servers import ixion
from benchmarks.loads.column_clients import Figures

OURS, CONFLUENT = "ixion", "confluent-kafka"
SIZES = {100: ("100 B", 3_000_000), 1000: ("1 KB", 600_000)}
KINDS = {"columns": False, "arrow": True}

Client = Callable[[str, str, int, bool], Figures]


def measure(client: Client, bootstrap: str, scale: float) -> Mapping[str, float]:
    rows = {}
    for size, (_, count) in SIZES.items():
        for kind, arrow in KINDS.items():
            found = fresh(client, bootstrap, f"size-{size}", int(count * scale), arrow)
            rows[f"{kind}-{size}"], rows[f"{kind}-{size}-cpu"] = found
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.05 if session.quick else 1.0
    server = session.enter(ixion())
    fresh(clients.first_ack, server.bootstrap)
    fresh(clients.create_topics, server.bootstrap, {f"size-{size}": 1 for size in SIZES})
    for size, (_, count) in SIZES.items():
        fresh(clients.produce, server.bootstrap, f"size-{size}", 1, size, int(count * scale), 1)
    return {
        OURS: partial(measure, column_clients.ours, server.bootstrap, scale),
        CONFLUENT: partial(measure, column_clients.theirs, server.bootstrap, scale),
    }


BENCHMARK = Benchmark(
    name="columns",
    title="Records as columns",
    rows=tuple(
        Row(key=f"{kind}-{size}{suffix}", label=f"{kind}, {label}{words}", unit="records/s", charted=not suffix)
        for kind in KINDS
        for size, (label, _) in SIZES.items()
        for suffix, words in (("", ""), ("-cpu", ", per second of processor time"))
    ),
    goals=tuple(
        Goal(
            label=f"{kind}, {label}: 1.5 times confluent-kafka",
            value=(f"{kind}-{size}", OURS),
            base=(f"{kind}-{size}", CONFLUENT),
            at_least=1.5,
        )
        for kind in KINDS
        for size, (label, _) in SIZES.items()
    ),
    baseline=CONFLUENT,
    contenders=contenders,
    rounds=3,
)
