"""How one broker goes with the number of clients, the number of partitions and the size of records.

Apache Kafka 3.9.1 is measured at the ends and in the middle only: it takes long with ten thousand partitions.
`IXION_BENCH_MOST` is the largest number of clients and partitions (10,000 without), `IXION_BENCH_SCALE` the share of
the requests at each point (1 without), `IXION_BENCH_MINUTES` how long all of it may take (15 without): each contender
has half of it, and a point that would begin later is left out.

- Clients: so many connections are open. Either a few of them are busy (50, or all if there are fewer) while the others
  have had one exchange and are idle, or all are busy. A busy one sends its next request when it has the answer.
- Partitions: of one topic. Writes go to all of them in turn, from 50 clients. A fetch of all of them finds nothing new.
- Records: in batches of 16 KB, or alone if they are larger; read in fetches of 1 MB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.framework import Benchmark, Contender, Curve, Goal, Row, Session
from benchmarks.loads import curve_points as points
from benchmarks.loads.broker_servers import Server, apache_kafka_on, ixion_on
from benchmarks.loads.crowd import most_connections
from benchmarks.loads.prepared import compile_repeat

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
MOST = int(os.environ.get("IXION_BENCH_MOST", "10000"))
SCALE = float(os.environ.get("IXION_BENCH_SCALE", "1"))
MINUTES = float(os.environ.get("IXION_BENCH_MINUTES", "15"))
QUICK_MOST, QUICK_SCALE = 100, 0.1
COUNTS = tuple(count for count in (1, 10, 100, 1_000, 10_000) if count <= MOST)
SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
KEEP = {"log.retention.ms": "-1"}


class Measure(NamedTuple):
    """One thing that is measured at each size."""

    name: str
    title: str
    unit: str
    more_is_better: bool = False


CLIENTS = (
    Measure("memory", "Memory of an idle connection", "KB"),
    Measure("produce-few-rate", "Produce, 50 busy clients, the others idle", "requests/s", True),
    Measure("produce-few-cpu", "Produce, 50 busy clients, the others idle: processor time", "µs"),
    Measure("produce-few-p99", "Produce, 50 busy clients, the others idle: p99", "ms"),
    Measure("produce-all-rate", "Produce, all clients busy", "requests/s", True),
    Measure("produce-all-cpu", "Produce, all clients busy: processor time", "µs"),
    Measure("produce-all-p99", "Produce, all clients busy: p99", "ms"),
    Measure("fetch-few-rate", "Fetch of 4 KB, 50 busy clients, the others idle", "requests/s", True),
    Measure("fetch-few-cpu", "Fetch of 4 KB, 50 busy clients, the others idle: processor time", "µs"),
    Measure("fetch-few-p99", "Fetch of 4 KB, 50 busy clients, the others idle: p99", "ms"),
    Measure("fetch-all-rate", "Fetch of 4 KB, all clients busy", "requests/s", True),
    Measure("fetch-all-cpu", "Fetch of 4 KB, all clients busy: processor time", "µs"),
    Measure("fetch-all-p99", "Fetch of 4 KB, all clients busy: p99", "ms"),
)
PARTITIONS = (
    Measure("create", "Creation, until the last partition takes a record", "s"),
    Measure("memory", "Memory after creation", "MB"),
    Measure("written", "Memory after records in every partition", "MB"),
    Measure("stop", "Orderly stop", "s"),
    Measure("start", "Start after an orderly stop", "s"),
    Measure("start-killed", "Start after kill -9", "s"),
    Measure("idle", "Memory after a start", "MB"),
    Measure("spread-rate", "Produce to all partitions in turn, 50 clients", "requests/s", True),
    Measure("spread-cpu", "Processor time of such a produce", "µs"),
    Measure("spread-p99", "Produce to all partitions in turn: p99", "ms"),
    Measure("fetch", "Fetch that names all partitions", "ms"),
    Measure("fetch-cpu", "Fetch that names all partitions, processor time", "ms"),
    Measure("fetch-session", "Fetch of all partitions in a session", "ms"),
    Measure("fetch-session-cpu", "Fetch of all partitions in a session, processor time", "ms"),
)
RECORDS = (
    Measure("produce-records", "Produce", "records/s", True),
    Measure("produce-mb", "Produce", "MB/s", True),
    Measure("produce-cpu", "Produce, processor time", "ms/MB"),
    Measure("fetch-mb", "Fetch", "MB/s", True),
    Measure("fetch-cpu", "Fetch, processor time", "ms/MB"),
)
FAMILIES: tuple[tuple[str, str, tuple[int, ...], tuple[Measure, ...]], ...] = (
    ("clients", "clients", COUNTS, CLIENTS),
    ("partitions", "partitions", COUNTS, PARTITIONS),
    ("records", "bytes of a record", SIZES, RECORDS),
)


def curve_of(family: str, word: str, sizes: tuple[int, ...], each: Measure) -> Curve:
    if (family, each.name) == ("clients", "memory"):
        sizes = tuple(size for size in sizes if size > points.ACTIVE)  # of fewer clients none is idle
    keys = {size: f"{family}-{size}-{each.name}" for size in sizes}
    return Curve(title=each.title, size=word, unit=each.unit, points=keys, more_is_better=each.more_is_better)


CURVES = tuple(curve_of(family, word, sizes, each) for family, word, sizes, measures in FAMILIES for each in measures)


def measure(
    life: Callable[[str, Mapping[str, str]], AbstractContextManager[Server]],
    counts: tuple[int, ...],
    sizes: tuple[int, ...],
    scale: float,
) -> Mapping[str, float]:
    def on(folder: str) -> AbstractContextManager[Server]:
        return life(folder, KEEP)

    found: dict[str, float] = {}
    end = time.monotonic() + MINUTES / 2 * 60

    def put(family: str, size: int, point: Callable[[str, int], points.Point]) -> None:
        """A point that fails is left out: a broker that does not bear a size must not cost the others their figures."""
        if time.monotonic() > end:
            print(f"{family}, {size:,}: not measured: there is no time left", file=sys.stderr)
            return
        try:
            with tempfile.TemporaryDirectory() as data:
                found.update({f"{family}-{name}": value for name, value in point(data, size).items()})
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"{family}, {size:,}: not measured: {error}", file=sys.stderr)

    with tempfile.TemporaryDirectory() as tools:
        program = compile_repeat(Path(tools))
        for size in sizes:
            put("records", size, lambda data, size: points.sizes(program, on(data), (size,), scale))
        for count in counts:  # the largest numbers, which take longest, come last
            if count <= most_connections():
                put("clients", count, lambda data, size: points.clients(program, on(data), (size,), scale))
            put("partitions", count, lambda data, size: points.partitions(program, data, on, size, scale))
    return found


def ends_of(all_of_them: tuple[int, ...]) -> tuple[int, ...]:
    """The first, the last and the one in the middle."""
    return tuple(dict.fromkeys((all_of_them[0], all_of_them[len(all_of_them) // 2], all_of_them[-1])))


def contenders(session: Session) -> Mapping[str, Contender]:
    counts = tuple(count for count in COUNTS if count <= QUICK_MOST) if session.quick else COUNTS
    scale = QUICK_SCALE if session.quick else SCALE
    return {
        OURS: partial(measure, ixion_on, counts, SIZES, scale),
        KAFKA: partial(measure, apache_kafka_on, ends_of(counts), ends_of(SIZES), scale),
    }


LARGEST = COUNTS[-1]

BENCHMARK = Benchmark(
    name="curves",
    title="How one broker goes with clients, partitions and sizes",
    rows=tuple(
        Row(key=key, label=f"{curve.title}, {size:,} {curve.size}", unit=curve.unit)
        for curve in CURVES
        for size, key in curve.points.items()
    ),
    goals=tuple(
        Goal(label=label, value=(key, OURS), base=(key, KAFKA), at_most=1.0)
        for label, key in (
            (f"p99 of 50 busy clients beside {LARGEST:,}", f"clients-{LARGEST}-produce-few-p99"),
            (f"creation of {LARGEST:,} partitions", f"partitions-{LARGEST}-create"),
            (f"memory with {LARGEST:,} partitions", f"partitions-{LARGEST}-written"),
            (f"start with {LARGEST:,} partitions", f"partitions-{LARGEST}-start"),
            (f"start after kill -9 with {LARGEST:,} partitions", f"partitions-{LARGEST}-start-killed"),
            (f"fetch that names {LARGEST:,} partitions", f"partitions-{LARGEST}-fetch"),
            (f"fetch of {LARGEST:,} partitions in a session", f"partitions-{LARGEST}-fetch-session"),
        )
    ),
    baseline=KAFKA,
    contenders=contenders,
    rounds=1,
    curves=CURVES,
)
