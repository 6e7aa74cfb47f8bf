"""Our purgatory beside Apache Kafka's, under the load of Kafka's own TestPurgatoryPerformance.

Kafka's half is that very class, run as it is in a warm JVM (java/PurgatoryPeer.java); ours is a port of it
(loads/purgatory_load.py). Two loads, both with a timeout of 200 ms: requests that are mostly answered in time (median
20 ms, three in four within 60 ms) and requests that mostly run into the timeout (200 and 400 ms).

A rate is sustained when the requests really get in at that rate, and the last one is done no later than its timeout
allows. We look for the highest: an overload shows about where it is, then the target comes down until it is met.

Ours runs with the garbage collector relaxed, as `ixion.timer.relax_collector` sets it; the rows below it show Python's
own thresholds, and none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.framework import Benchmark, Contender, Goal, JavaPeer, Row, Session, fresh
from benchmarks.loads import purgatory_load, purge_load
from benchmarks.loads.purgatory_load import Harness, Load

THREADS, LOOP, KAFKA = "ixion, threads", "ixion, event loop", "Kafka"
LOADS = {"low": (20, 60), "high": (200, 400)}
WORDS = {"low": "answered in time", "high": "mostly timed out"}
TIMEOUT_MS = 200
OVERLOAD = 5_000_000.0  # requests a second, more than anybody can
MET = 0.97  # of the target; the rest is the noise of a second's worth of random arrivals
SLACK_MS = 150  # for the last requests to be completed after their time
FIRST_TRY, STEP = 1.1, 0.9  # of the rate reached in overload; then of the rate before
PURGED = 340_000
COLLECTORS = ("default", "off")  # beside the relaxed one

Figures = Mapping[str, float]
Run = Callable[[int, float], Figures]  # requests, rate


def sustained(run: Run, seconds: float) -> Figures:
    """The figures of the highest rate that was met."""
    rate = run(int(200_000 * seconds), OVERLOAD)["actual"] * FIRST_TRY
    while True:
        figures = run(int(rate * seconds), rate)
        in_time = figures["elapsed"] <= seconds * 1000 / MET + TIMEOUT_MS + SLACK_MS
        if figures["actual"] >= MET * figures["target"] and in_time:
            return figures
        rate *= STEP


def ours(form: Callable[[Harness], float], purge: Callable[..., Figures], scale: int) -> Figures:
    seconds = 1.5 / scale
    rows: dict[str, float] = {}
    for key, (p50, p75) in LOADS.items():

        def run(requests: int, rate: float, *, p50: int = p50, p75: int = p75, **options: Any) -> Figures:
            load = Load(requests=requests, rate=rate, timeout_ms=TIMEOUT_MS, p50_ms=p50, p75_ms=p75)
            return fresh(purgatory_load.measure, form, load, **options)

        figures = sustained(run, seconds)
        rows |= {f"{key}-rate": figures["actual"], f"{key}-cpu": figures["cpu"], f"{key}-gc": figures["gc"]}
        requests = int(figures["actual"] * seconds)
        for collector in COLLECTORS:
            rows[f"{key}-cpu-{collector}"] = run(requests, figures["actual"], collector=collector)["cpu"]
        rows[f"{key}-harness"] = run(requests, figures["actual"], null=True)["cpu"]
    purged = fresh(purge, PURGED // scale)
    rows |= {"purge": purged["longest"], "purge-own": purged["own"], "purge-calm": purged["calm"]}
    rows["purge-default"] = fresh(purge, PURGED // scale, "default")["longest"]
    return rows


def kafka(peer: JavaPeer, scale: int) -> Figures:
    rows: dict[str, float] = {}
    for key, (p50, p75) in LOADS.items():

        def run(requests: int, rate: float, *, p50: int = p50, p75: int = p75) -> Figures:
            return peer.ask("load", requests, rate, TIMEOUT_MS, p50, p75)

        figures = sustained(run, 1.5 / scale)
        rows |= {f"{key}-rate": figures["actual"], f"{key}-cpu": figures["cpu"]}
    purged = peer.ask("purge", PURGED // scale)
    return rows | {"purge": purged["longest"], "purge-calm": purged["calm"]}


def contenders(session: Session) -> dict[str, Contender]:
    scale = 3 if session.quick else 1
    peer = session.enter(JavaPeer("PurgatoryPeer", "kafka-3.9.1-test"))
    return {
        THREADS: lambda: ours(purgatory_load.in_threads, purge_load.in_threads, scale),
        LOOP: lambda: ours(purgatory_load.on_loop, purge_load.on_loop, scale),
        KAFKA: lambda: kafka(peer, scale),
    }


def rows() -> tuple[Row, ...]:
    found: list[Row] = []
    for key, words in WORDS.items():
        found += [
            Row(key=f"{key}-rate", label=f"{words}: sustained rate", unit="requests/s"),
            Row(key=f"{key}-cpu", label=f"{words}: processor time of a request", unit="µs"),
            Row(
                key=f"{key}-cpu-default", label="the same, Python's own collector thresholds", unit="µs", charted=False
            ),
            Row(key=f"{key}-cpu-off", label="the same without the garbage collector", unit="µs", charted=False),
            Row(key=f"{key}-harness", label="of which the harness itself", unit="µs", charted=False),
            Row(key=f"{key}-gc", label="of which in the garbage collector", unit="ns", charted=False),
        ]
    found += [
        Row(key="purge", label=f"longest hold-up while {PURGED:,} operations are purged", unit="ms"),
        Row(key="purge-own", label="longest of it in processor time of the process", unit="ms", charted=False),
        Row(key="purge-default", label="the same, Python's own collector thresholds", unit="ms", charted=False),
        Row(key="purge-calm", label="longest hold-up without a purge: the machine's noise", unit="ms", charted=False),
    ]
    return tuple(found)


def goals() -> tuple[Goal, ...]:
    found: list[Goal] = []
    for name in (THREADS, LOOP):
        for key, words in WORDS.items():
            rate, cpu = f"{key}-rate", f"{key}-cpu"
            found += [
                Goal(label=f"{name}: {words}, rate, of Kafka's", value=(rate, name), base=(rate, KAFKA), at_least=1.0),
                Goal(
                    label=f"{name}: {words}, processor time, of Kafka's",
                    value=(cpu, name),
                    base=(cpu, KAFKA),
                    at_most=1.0,
                ),
            ]
        found += [
            Goal(label=f"{name}: hold-up by a purge, of 10 ms", value=("purge", name), base=10.0, at_most=1.0),
            Goal(label=f"{name}: its own part in it, of 10 ms", value=("purge-own", name), base=10.0, at_most=1.0),
        ]
    return tuple(found)


BENCHMARK = Benchmark(
    name="purgatory",
    title="Purgatory: ixion beside Apache Kafka 3.9.1",
    rows=rows(),
    goals=goals(),
    baseline=KAFKA,
    contenders=contenders,
)
