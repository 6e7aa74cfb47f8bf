"""Our timers beside Apache Kafka's SystemTimer, a heap, and asyncio's own.

Kafka's half of the loads is java/TimerPeer.java, ours loads/timer_loads.py: same delays, same number of tasks, a
reaper thread that turns the wheel with a poll of 200 ms in both. The task class of ours is plain Python, and its
construction is part of what is timed on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.framework import Benchmark, Contender, Goal, JavaPeer, Row, Session, fresh
from benchmarks.loads import timer_loads
from benchmarks.loads.timers import CallLater, Competitor, Heap, Looped, Threaded

SYSTEM, LOOP, KAFKA = "ixion SystemTimer", "ixion LoopTimer", "Kafka SystemTimer"
HEAP, CALL_LATER = "heapq", "loop.call_later"

SIZES = {"10k": 10_000, "1M": 1_000_000, "10M": 10_000_000}
WORDS = {"10k": "10 thousand", "1M": "a million", "10M": "10 million"}
OPERATIONS = 1_000_000
BURST = (1_000_000, 1_000)  # tasks, over so many ms
LATENESS = (100_000, 3_000)  # tasks a second, for so many ms


def ours(make: Callable[[], Competitor], sizes: Mapping[str, int], scale: int) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    for key, tasks in sizes.items():
        numbers = fresh(timer_loads.measure, timer_loads.pending, make, tasks // scale, OPERATIONS // scale)
        rows |= {f"fresh-{key}": numbers["fresh"], f"again-{key}": numbers["again"]}
        if key == "1M":
            rows |= {name: numbers[name] for name in ("bytes", "fill", "gc-longest", "gc-total")}
            if numbers["made"]:
                rows["made-1M"] = numbers["made"]
    if make in (Threaded, Looped):
        rows |= fresh(timer_loads.measure, timer_loads.fill_without_gc, make, SIZES["1M"] // scale)
    rows |= fresh(timer_loads.measure, timer_loads.burst, make, BURST[0] // scale, BURST[1])
    if make is not Heap:
        rows |= fresh(timer_loads.measure, timer_loads.lateness, make, LATENESS[0], LATENESS[1] // scale)
    return rows


def kafka(peer: JavaPeer, scale: int) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    for key, tasks in SIZES.items():
        numbers = peer.ask("pending", tasks // scale, OPERATIONS // scale)
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
    small = {key: SIZES[key] for key in ("10k", "1M")}  # ten million would take the other two a minute each
    return {
        SYSTEM: lambda: ours(Threaded, SIZES, scale),
        LOOP: lambda: ours(Looped, SIZES, scale),
        KAFKA: lambda: kafka(peer, scale),
        HEAP: lambda: ours(Heap, small, scale),
        CALL_LATER: lambda: ours(CallLater, small, scale),
    }


ROWS = (
    *(Row(key=f"fresh-{key}", label=f"add + cancel a new task, {WORDS[key]} pending", unit="ns") for key in SIZES),
    Row(key="made-1M", label="the same without making the task, a million pending", unit="ns"),
    *(
        Row(key=f"again-{key}", label=f"add a waiting task again, {WORDS[key]} pending", unit="ns", charted=key == "1M")
        for key in SIZES
    ),
    Row(key="bytes", label="memory of a pending task, itself included", unit="bytes"),
    Row(key="fill", label="add a million tasks that stay, each", unit="ns"),
    Row(key="fill-nogc", label="the same without the garbage collector", unit="ns", charted=False),
    Row(key="gc-total", label="garbage collection meanwhile", unit="ms", charted=False),
    Row(key="gc-longest", label="longest collection meanwhile", unit="ms", charted=False),
    Row(key="burst", label="a million tasks over one second, until all have run", unit="ms"),
    Row(key="burst-cpu", label="processor time of these", unit="ms", charted=False),
    Row(key="late-p50", label="lateness at 100 thousand tasks a second, p50", unit="ms", charted=False),
    Row(key="late-p99", label="lateness at 100 thousand tasks a second, p99", unit="ms"),
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
