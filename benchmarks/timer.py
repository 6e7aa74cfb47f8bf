"""Our timers beside Apache Kafka's SystemTimer, a heap, and asyncio's own.

Kafka's half of the loads is java/TimerPeer.java, ours loads/timer_loads.py: same delays, same number of tasks, a
reaper thread that turns the wheel with a poll of 200 ms in both. The task class of ours is plain Python, and making
it is part of what is timed on both sides, but where a row says otherwise.

All Python contenders run with the garbage collector relaxed, as `ixion.timer.relax_collector` sets it; the rows that
depend on it are given for Python's own thresholds, and for none, as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, JavaPeer, Row, Session, fresh
from benchmarks.loads import timer_loads
from benchmarks.loads.collector import Collector
from benchmarks.loads.timers import CallLater, Competitor, Heap, Looped, Threaded

SYSTEM, LOOP, KAFKA = "ixion SystemTimer", "ixion LoopTimer", "Kafka SystemTimer"
HEAP, CALL_LATER = "heapq", "loop.call_later"

SIZES = {"10k": 10_000, "1M": 1_000_000, "10M": 10_000_000}
WORDS = {"10k": "10 thousand", "1M": "a million", "10M": "10 million"}
OPERATIONS = {SYSTEM: 500_000, LOOP: 500_000, KAFKA: 1_000_000, HEAP: 100_000, CALL_LATER: 100_000}
BURST = (1_000_000, 1_000)  # tasks, over so many ms
COLLECTORS: tuple[Collector, ...] = ("default", "off")  # beside the relaxed one
LATENESS = (100_000, 3_000)  # tasks a second, for so many ms


MAKERS: Mapping[str, Callable[[], Competitor]] = {SYSTEM: Threaded, LOOP: Looped, HEAP: Heap, CALL_LATER: CallLater}


def ours(name: str, scale: int) -> Mapping[str, float]:
    make = MAKERS[name]
    wheel = name in (SYSTEM, LOOP)
    rows: dict[str, float] = {}
    for key, tasks in SIZES.items():
        if key == "10M" and not wheel:  # it would take the other two a minute each
            continue
        numbers = measured(make, timer_loads.pending, tasks // scale, OPERATIONS[name] // scale)
        rows |= {f"fresh-{key}": numbers["fresh"], f"again-{key}": numbers["again"]}
        if key == "1M":
            rows |= {row: numbers[row] for row in ("bytes", "fill", "gc-longest", "gc-total")}
            if wheel:
                rows["made-1M"] = numbers["made"]
    rows |= measured(make, timer_loads.burst, BURST[0] // scale, BURST[1])
    if name != HEAP:
        rows |= measured(make, timer_loads.lateness, LATENESS[0], LATENESS[1] // scale)
    if wheel:
        rows |= by_collector(make, scale)
    return rows


def by_collector(make: Callable[[], Competitor], scale: int) -> Mapping[str, float]:
    """The rows that depend on the garbage collector, under its other settings."""
    rows: dict[str, float] = {}
    for collector in COLLECTORS:
        rows[f"fill-{collector}"] = measured(make, timer_loads.fill, SIZES["1M"] // scale, collector=collector)["fill"]
        burst = measured(make, timer_loads.burst, BURST[0] // scale, BURST[1], collector=collector)
        rows[f"burst-{collector}"] = burst["burst"]
    late = measured(make, timer_loads.lateness, LATENESS[0], LATENESS[1] // scale, collector="default")
    return rows | {"late-p99-default": late["late-p99"]}


def measured(
    make: Callable[[], Competitor], load: timer_loads.Load, *sizes: int, collector: Collector = "relaxed"
) -> Mapping[str, float]:
    return fresh(timer_loads.measure, load, make, *sizes, collector=collector)


def kafka(peer: JavaPeer, scale: int) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    for key, tasks in SIZES.items():
        numbers = peer.ask("pending", tasks // scale, OPERATIONS[KAFKA] // scale)
        rows |= {f"fresh-{key}": numbers["fresh"], f"again-{key}": numbers["again"]}
        if key == "1M":
            rows |= {"bytes": numbers["bytes"], "fill": numbers["fill"], "made-1M": numbers["made"]}
    burst = peer.ask("burst", BURST[0] // scale, BURST[1])
    rows |= {"burst": burst["ms"], "burst-cpu": burst["cpu"]}
    late = peer.ask("lateness", LATENESS[0], LATENESS[1] // scale)
    return rows | {"late-p50": late["p50"], "late-p99": late["p99"]}


def contenders(session: Session) -> dict[str, Contender]:
    scale = 10 if session.quick else 1
    peer = session.enter(JavaPeer("TimerPeer", "kafka-3.9.1"))
    python = {name: partial(ours, name, scale) for name in (SYSTEM, LOOP, HEAP, CALL_LATER)}
    return {SYSTEM: python[SYSTEM], LOOP: python[LOOP], KAFKA: partial(kafka, peer, scale), **python}


ROWS = (
    *(Row(key=f"fresh-{key}", label=f"add + cancel a new task, {WORDS[key]} pending", unit="ns") for key in SIZES),
    Row(key="made-1M", label="the same without making the task, a million pending", unit="ns"),
    *(
        Row(key=f"again-{key}", label=f"add a waiting task again, {WORDS[key]} pending", unit="ns", charted=key == "1M")
        for key in SIZES
    ),
    Row(key="bytes", label="memory of a pending task, itself included", unit="bytes"),
    Row(key="fill", label="add a million tasks that stay, each", unit="ns"),
    Row(key="fill-default", label="the same with Python's own collector thresholds", unit="ns", charted=False),
    Row(key="fill-off", label="the same without the garbage collector", unit="ns", charted=False),
    Row(key="gc-total", label="garbage collection meanwhile", unit="ms", charted=False),
    Row(key="gc-longest", label="longest collection meanwhile", unit="ms", charted=False),
    Row(key="burst", label="a million tasks over one second, until all have run", unit="ms"),
    Row(key="burst-default", label="the same with Python's own collector thresholds", unit="ms", charted=False),
    Row(key="burst-off", label="the same without the garbage collector", unit="ms", charted=False),
    Row(key="burst-cpu", label="processor time of the million", unit="ms", charted=False),
    Row(key="late-p50", label="lateness at 100 thousand tasks a second, p50", unit="ms", charted=False),
    Row(key="late-p99", label="lateness at 100 thousand tasks a second, p99", unit="ms"),
    Row(key="late-p99-default", label="the same with Python's own collector thresholds", unit="ms", charted=False),
)


def goals() -> tuple[Goal, ...]:
    found: list[Goal] = []
    for name, share in ((SYSTEM, 1.0), (LOOP, 0.5)):
        for row, words in (("fresh", "make + add + cancel"), ("made", "add + cancel"), ("again", "add again")):
            cells = ((f"{row}-1M", name), (f"{row}-1M", KAFKA))
            found.append(Goal(label=f"{name}: {words}, of Kafka's time", value=cells[0], base=cells[1], at_most=share))
        found += [
            Goal(label=f"{name}: memory, of Kafka's", value=("bytes", name), base=("bytes", KAFKA), at_most=2.0),
            Goal(
                label=f"{name}: 10 million pending, of the time at 10 thousand",
                value=("fresh-10M", name),
                base=("fresh-10k", name),
                at_most=1.25,
            ),
            Goal(
                label=f"{name}: the million, of Kafka's time", value=("burst", name), base=("burst", KAFKA), at_most=1.0
            ),
            Goal(label=f"{name}: lateness p99, of 2 ms", value=("late-p99", name), base=2.0, at_most=1.0),
        ]
    return tuple(found)


BENCHMARK = Benchmark(
    name="timer",
    title="Timer: ixion beside Apache Kafka 3.9.1, heapq and asyncio",
    rows=ROWS,
    goals=goals(),
    baseline=KAFKA,
    contenders=contenders,
)
