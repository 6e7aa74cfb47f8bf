"""One broker beside Apache Kafka 3.9.1 where no client library is the limit.

A compiled program sends frames that were made beforehand (`loads/repeat.c`), over one connection or many, and does not
look into the answers. Each load is measured by its rate and by the requests that the broker answers in a second of its
own processor time; the latter hardly depends on who else uses the machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import Server, apache_kafka, ixion
from benchmarks.loads.prepared import (
    api_versions_request,
    check_answer,
    compile_repeat,
    fetch_request,
    framed,
    produce_request,
    repeat,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
PRODUCE, FETCH = 9, 12  # versions; Fetch 13 and later names topics by id
WARM = 10  # of so many requests one is sent before those that count
KEEP = {"log.retention.ms": "-1"}


class Load(NamedTuple):
    label: str
    api: ApiKey
    version: int
    body: Callable[[str], Struct]  # for a topic
    connections: int
    window: int
    requests: int


def produce(label: str, records: int, size: int, connections: int, window: int, requests: int) -> Load:
    body = partial(produce_request, records=records, size=size)
    return Load(f"produce, {label}", ApiKey.PRODUCE, PRODUCE, body, connections, window, requests)


def fetch(label: str, max_bytes: int, connections: int, requests: int) -> Load:
    body = partial(fetch_request, max_bytes=max_bytes)
    return Load(f"fetch, {label}", ApiKey.FETCH, FETCH, body, connections, 1, requests)


LOADS = {
    "sync": produce("synchronous, 100 B", 1, 100, 1, 1, 20_000),
    "crowd": produce("200 clients of 100 B", 1, 100, 200, 1, 60_000),
    "16k": produce("batches of 16 KB", 16, 1000, 4, 5, 20_000),
    "1m": produce("batches of 1 MB", 1000, 1000, 2, 5, 800),
    "fetch-1m": fetch("1 MB", 1_000_000, 2, 2_000),
    "fetch-4k": fetch("4 KB, 100 clients", 4_096, 100, 60_000),
    "versions": Load("ApiVersions, 16 clients", ApiKey.API_VERSIONS, 3, api_versions_request, 16, 1, 60_000),
}
FILLED = {"fetch-1m": 16, "fetch-4k": 4}  # topics that are read: records of 1 KB in a batch
FILLS = 200  # batches in each of them


def measure(start: Callable[[], AbstractContextManager[Server]], scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, start() as server:
        program = compile_repeat(Path(folder))
        fresh(clients.first_ack, server.bootstrap)
        fresh(clients.create_topics, server.bootstrap, dict.fromkeys(LOADS, 1))
        port = int(server.bootstrap.rsplit(":", 1)[1])
        for name, records in FILLED.items():
            filler = framed(ApiKey.PRODUCE, PRODUCE, produce_request(name, records, 1000))
            repeat(program, port, filler, connections=1, window=1, requests=FILLS)
        for name, load in LOADS.items():
            body, count = load.body(name), int(load.requests * scale)
            check_answer(port, load.api, load.version, body)
            frame = framed(load.api, load.version, body)
            run = partial(repeat, program, port, frame, connections=load.connections, window=load.window)
            run(requests=max(count // WARM, load.connections))
            before = server.cpu_seconds()
            answered = run(requests=count)
            rows[f"{name}-rate"] = count / answered.seconds
            rows[f"{name}-cpu"] = count / (server.cpu_seconds() - before)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.2 if session.quick else 1.0
    ours, kafka = partial(ixion, KEEP), partial(apache_kafka, KEEP)
    return {OURS: partial(measure, ours, scale), KAFKA: partial(measure, kafka, scale)}


BENCHMARK = Benchmark(
    name="limits",
    title="One broker where no client library is the limit",
    rows=tuple(
        row
        for name, load in LOADS.items()
        for row in (
            Row(key=f"{name}-rate", label=load.label, unit="1/s"),
            Row(key=f"{name}-cpu", label=f"{load.label}, per processor second", unit="1/s"),
        )
    ),
    goals=tuple(
        goal
        for name, load in LOADS.items()
        for goal in (
            Goal(label=load.label, value=(f"{name}-rate", OURS), base=(f"{name}-rate", KAFKA), at_least=1.3),
            Goal(
                label=f"{load.label}, per processor second",
                value=(f"{name}-cpu", OURS),
                base=(f"{name}-cpu", KAFKA),
                at_least=2.0,
            ),
        )
    ),
    baseline=KAFKA,
    contenders=contenders,
)
