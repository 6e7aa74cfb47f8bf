"""One broker alone, beside an earlier build of ixion: a change must not make it slower or larger.

    IXION_BENCH_BEFORE=DIR make bench ARGS=before        # DIR: pip install --target DIR of the earlier checkout
    IXION_BENCH_NOW=OTHER  ...                           # instead of the installed build

Both builds take their turn in every round, the order reversed each time. Each is started anew with an empty directory;
clients are librdkafka, in processes of their own. It is left out of a run of all benchmarks unless a build is named.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import ixion
from benchmarks.loads.first_record import Client

NOW, BEFORE = "this build", "the build before"
VARIABLE = "IXION_BENCH_BEFORE"
SIZE = 1_000
MB = 100  # of one throughput
SYNCHRONOUS = 4_000
REST_S = 1.0


def measure(code: str, scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    with Client() as client, ixion(code=code) as server:
        acknowledged = client.first_record(server.bootstrap)
        time.sleep(REST_S)
        rows["first"] = (acknowledged - server.started) * 1000
        rows["start"] = server.cpu_seconds() * 1000
        rows["idle"] = server.resident_mb()
        where = server.bootstrap
        begun = time.perf_counter()
        fresh(clients.create_topics, where, {"sync": 1, "many": 6})
        rows["topics"] = (time.perf_counter() - begun) * 1000
        rows["p50"], rows["p99"] = fresh(clients.synchronous, where, "sync", int(SYNCHRONOUS * scale), -1)
        count = int(MB * 1_000_000 * scale) // SIZE
        before = server.cpu_seconds()
        rows["produce"] = fresh(clients.produce, where, "many", 6, SIZE, count, -1)
        rows["cpu"] = (server.cpu_seconds() - before) / (count * SIZE / 1e6) * 1000
        rows["consume"] = fresh(clients.consume, where, "many", 6, count)
        rows["loaded"] = server.resident_mb(peak=True)
    return rows


def packages(place: str) -> str:
    """Where Python finds `ixion` in a directory of `pip install --target`, or in a virtual environment."""
    found = [
        path for path in (Path(place), *Path(place).glob("lib/python*/site-packages")) if (path / "ixion").is_dir()
    ]
    if not found:
        raise SystemExit(f"{place} has no ixion in it: pip install --no-deps --target {place} CHECKOUT")
    return str(found[0].resolve())


def contenders(session: Session) -> Mapping[str, Contender]:
    before, now = os.environ.get(VARIABLE), os.environ.get("IXION_BENCH_NOW", "")
    if not before:
        raise SystemExit(f"name the earlier build: {VARIABLE}=DIR make bench ARGS=before")
    scale = 0.1 if session.quick else 1.0
    return {
        NOW: partial(measure, packages(now) if now else "", scale),
        BEFORE: partial(measure, packages(before), scale),
    }


ROWS = (
    Row(key="first", label="from the start to the first acknowledged record", unit="ms"),
    Row(key="start", label="processor time of a start and its first record", unit="ms"),
    Row(key="idle", label="memory, idle", unit="MB"),
    Row(key="topics", label="two topics created, with the start of a client", unit="ms"),
    Row(key="p50", label="synchronous produce, acks=all, median", unit="µs"),
    Row(key="p99", label="synchronous produce, acks=all, p99", unit="µs"),
    Row(key="produce", label="produce 1 KB, 6 partitions, acks=all", unit="MB/s"),
    Row(key="cpu", label="broker's processor time per MB produced", unit="ms"),
    Row(key="consume", label="consume 1 KB, 6 partitions", unit="MB/s"),
    Row(key="loaded", label="memory, at its peak under load", unit="MB"),
)
SLACK = 1.05  # what two runs of one build differ by


def goal(row: Row) -> Goal:
    value, base = (row.key, NOW), (row.key, BEFORE)
    if row.unit == "MB/s":
        return Goal(label=row.label, value=value, base=base, at_least=1 / SLACK)
    return Goal(label=row.label, value=value, base=base, at_most=SLACK)


BENCHMARK = Benchmark(
    name="before",
    title="One broker beside an earlier build",
    rows=ROWS,
    goals=tuple(goal(row) for row in ROWS),
    baseline=BEFORE,
    contenders=contenders,
)
