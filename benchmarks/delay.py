"""Messages for later: how late they come while very many wait, beside six other ways to have that.

A round: messages of 1,000 bytes are scheduled for tomorrow until 10,000, 100,000 and a million wait, as fast as they
are acknowledged. At each of these, `TIMED` more are scheduled for the next seconds, `RATE` a second, and a consumer
notes when each arrives; at 100,000 also at the other rates of `RATES`. Then `HERD` that are due at the same moment. At
last the process that keeps what waits is killed and started again, until it delivers a new message.

What is timed is scheduled before the first of it is due; a system that is too slow for that gets more time. Systems
that may deliver early have negative latenesses, and `early` says how early the earliest was.

What only ixion promises is measured after that, each on a broker of its own: `loads/schedulers/extremes` and `fixed`.
The former can be run one by one: `python -m benchmarks.loads.schedulers.extremes herd sustained`.

Lateness is arrival minus due time by the clock of this process, so it includes the client. Memory is what the process
that keeps what waits grew by after the first 10,000, for each message; with the parts of files that it has mapped, and
without.

    IXION_BENCH_PENDING=10000000    goes on to ten million, ours only
    IXION_BENCH_SUSTAINED=300       seconds at 12,000 a second (10)
    IXION_BENCH_ALONE=1             without the six others
    IXION_BENCH_RIVALS=Pulsar,NATS  only the others whose names begin so
    IXION_BENCH_PARTS=herd,far      of ours only these: waiting, near, herd, sustained, restart, fixed, off, far
    IXION_BENCH_COMPILED=1          also builds and compares a compiled copy without the feature; minutes of building

All of it takes the better part of an hour. In pieces, each of which keeps the results of the others:

    python -m benchmarks delay --only Pulsar
    IXION_BENCH_PARTS=herd python -m benchmarks delay --only ixion

What ordinary topics pay for the feature is counted, in instructions of the interpreter for a produce and for a fetch,
beside a copy of the sources from which the feature is cut (`loads/without_delays`); in instructions of the processor
for compiled copies (`loads/compiled_instructions`).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from benchmarks.loads.compiled_instructions import build, count_compiled
from benchmarks.loads.off_instructions import count_instructions
from benchmarks.loads.schedulers.extremes import SUSTAINED_S, far, herd_beside_others, near, restart, sustained
from benchmarks.loads.schedulers.fixed import fixed
from benchmarks.loads.schedulers.kafka_protocol import ixion, on_kafka
from benchmarks.loads.schedulers.messages import fill, herd, lateness, part, until_delivered
from benchmarks.loads.schedulers.nats import nats
from benchmarks.loads.schedulers.pulsar import pulsar
from benchmarks.loads.schedulers.rabbitmq import rabbitmq
from benchmarks.loads.schedulers.redis import redis
from benchmarks.loads.schedulers.rocketmq import name_server, on_rocketmq
from benchmarks.loads.schedulers.scheduler import Start, private_of, resident_of
from benchmarks.loads.without_delays import CHECKOUT, write_without_delays
from devtools.kafka import RealKafka

OURS = "ixion"
NATS = "NATS JetStream 2.12"
REDIS = "Redis, polled every 10 ms"
RABBIT = "RabbitMQ, TTL and dead letters"
ETF1 = "scheduler on Apache Kafka"
ROCKET = "RocketMQ 5.5"
PULSAR = "Pulsar 4.0 standalone"
RIVALS = (NATS, REDIS, RABBIT, ETF1, ROCKET, PULSAR)
WITHOUT = "ixion without delays"
BACKLOGS = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}
MOST = {"10m": 10_000_000}
TIMED, RATE = 2_000, 500  # messages, and how many are due in a second
RATES = {100: 400, 5_000: 10_000, 10_000: 20_000}  # how many are due in a second, and how many messages
RATES_AT = "100k"
COMPILED = "IXION_BENCH_COMPILED" in os.environ
HERD, LARGE_HERD = 20_000, 100_000


def measure(start: Start, backlogs: Mapping[str, int], scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    count = max(int(TIMED * scale), 200)
    with tempfile.TemporaryDirectory(prefix="delay-") as folder:
        data = Path(folder)
        with start(data) as scheduler:
            lateness(scheduler, 50, RATE)  # nothing that happens once counts
            before, private, have, first, earliest = 0, 0, 0, 0, 0.0
            for key, backlog in backlogs.items():
                begun = time.perf_counter()
                fill(scheduler, have, backlog)
                rows["accept"] = (backlog - have) / (time.perf_counter() - begun)
                have = backlog
                lateness(scheduler, 50, RATE)  # it may not have read yet what it has acknowledged
                if first == 0:
                    before, private, first = resident_of(scheduler.pid), private_of(scheduler.pid), have
                else:
                    rows["memory"] = max(resident_of(scheduler.pid) - before, 0) / (have - first)
                    rows["private"] = max(private_of(scheduler.pid) - private, 0) / (have - first)
                found = lateness(scheduler, count, RATE)
                rows[f"p50-{key}"], rows[f"p99-{key}"], rows[f"max-{key}"] = (
                    part(found, 500),
                    part(found, 990),
                    found[-1],
                )
                earliest = max(earliest, -found[0])
                if key == RATES_AT:
                    for rate, timed in RATES.items():
                        rows[f"rate-{rate}"] = part(lateness(scheduler, max(int(timed * scale), 200), rate), 990)
            rows["early"] = earliest
            rows["herd"] = herd(scheduler, max(int(HERD * scale), 1_000))
            scheduler.kill()
        begun = time.perf_counter()
        with start(data) as scheduler:
            until_delivered(scheduler)
            rows["restart"] = (time.perf_counter() - begun) * 1_000
    return rows


def ours(backlogs: Mapping[str, int], scale: float) -> Mapping[str, float]:
    """All that is asked of everybody, and what only ixion promises."""
    pending = backlogs["1m"]
    parts: Mapping[str, Contender] = {
        "waiting": lambda: measure(ixion, backlogs, scale),
        "near": lambda: near(pending, max(int(5 * TIMED * scale), 1_000)),
        "herd": lambda: herd_beside_others(max(int(LARGE_HERD * scale), 5_000)),
        "sustained": sustained,
        "restart": lambda: restart(pending),
        "fixed": lambda: fixed(pending, max(int(TIMED * scale), 200)),
        "off": lambda: {**off(CHECKOUT / "src"), **(compiled(None) if COMPILED else {})},
        "far": lambda: far(MOST["10m"]),
    }
    wanted = os.environ.get("IXION_BENCH_PARTS", "").split(",")
    if wanted == [""]:
        wanted = [name for name in parts if name != "far"]
        if int(os.environ.get("IXION_BENCH_PENDING", "0")) >= MOST["10m"]:
            wanted.append("far")
    rows: dict[str, float] = {}
    for name in wanted:
        rows |= parts[name]()
    return rows


def without_delays() -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="delay-") as folder:
        tree = write_without_delays(Path(folder))
        return {**off(tree), **(compiled(build(tree)) if COMPILED else {})}


def off(tree: Path) -> Mapping[str, float]:
    produce, fetch = count_instructions(tree)
    return {"off-produce": produce, "off-fetch": fetch}


def compiled(packages: Path | None) -> Mapping[str, float]:
    """Of the copy that is installed there; without a folder, of the one that runs this."""
    produce, fetch = count_compiled(packages)
    return {"compiled-produce": produce, "compiled-fetch": fetch}


@contextmanager
def running_kafka() -> Iterator[RealKafka]:
    with tempfile.TemporaryDirectory() as data:
        kafka = RealKafka("3.9.1", Path(data), heap="1g", quick=False)
        kafka.format()
        kafka.launch()
        try:
            yield kafka
        finally:
            kafka.stop()


def scheduler_on_kafka(backlogs: Mapping[str, int], scale: float) -> Mapping[str, float]:
    with running_kafka() as kafka:  # only now: no other system is measured beside a second broker
        return measure(on_kafka(kafka), backlogs, scale)


def rocketmq(backlogs: Mapping[str, int], scale: float) -> Mapping[str, float]:
    with name_server() as names:
        return measure(on_rocketmq(names), backlogs, scale)


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.1 if session.quick else 1.0
    backlogs = {key: max(int(backlog * scale**2), 500) for key, backlog in BACKLOGS.items()}
    own: dict[str, Contender] = {OURS: partial(ours, backlogs, scale), WITHOUT: without_delays}
    if "IXION_BENCH_ALONE" in os.environ:
        return own
    wanted = tuple(os.environ.get("IXION_BENCH_RIVALS", "").split(","))
    rivals: Mapping[str, Contender] = {
        NATS: partial(measure, nats, backlogs, scale),
        REDIS: partial(measure, redis, backlogs, scale),
        RABBIT: partial(measure, rabbitmq, backlogs, scale),
        ETF1: partial(scheduler_on_kafka, backlogs, scale),
        ROCKET: partial(rocketmq, backlogs, scale),
        PULSAR: partial(measure, pulsar, backlogs, scale),
    }
    chosen = {name: rival for name, rival in rivals.items() if name.startswith(wanted)}
    if not chosen:
        raise ValueError(f"IXION_BENCH_RIVALS names none of these: {', '.join(rivals)}")
    return own | chosen


WORDS = {"10k": "10,000", "100k": "100,000", "1m": "1 million", "10m": "10 million"}

WAITING = tuple(
    row
    for key in (*BACKLOGS, *MOST)
    for row in (
        Row(key=f"p50-{key}", label=f"lateness while {WORDS[key]} wait, median", unit="ms", charted=False),
        Row(key=f"p99-{key}", label=f"lateness while {WORDS[key]} wait, 99 of 100", unit="ms"),
        Row(key=f"max-{key}", label=f"lateness while {WORDS[key]} wait, the latest", unit="ms", charted=False),
    )
)
OWN_ROWS = (
    Row(key="p50-near", label="1 million due within the hour, 1,000 a second: median", unit="ms", charted=False),
    Row(key="p99-near", label="the same, 99 of 100", unit="ms", charted=False),
    Row(key="p999-near", label="the same, 999 of 1,000", unit="ms", charted=False),
    Row(key="memory-near", label="memory for a message due within the hour", unit="B", charted=False),
    Row(key="memory-10m", label="memory for one of 10 million due later", unit="B", charted=False),
    Row(key="herd-out", label=f"{LARGE_HERD:,} due at once, until all are out", unit="s", charted=False),
    Row(key="beside-idle", label="a produce to another topic before that, 99 of 100", unit="ms", charted=False),
    Row(key="beside-herd", label="a produce to another topic meanwhile, 99 of 100", unit="ms", charted=False),
    Row(key="sustained-accept", label=f"scheduled a second, for {SUSTAINED_S:g} s", unit="1/s", charted=False),
    Row(key="sustained-release", label="delivered a second meanwhile", unit="1/s", charted=False),
    Row(key="sustained-p99", label="lateness meanwhile, 99 of 100", unit="ms", charted=False),
    Row(key="restart-snapshot", label="1 million wait: started, until it delivers", unit="ms", charted=False),
    Row(key="restart-rebuild", label="the same without any index or snapshot", unit="ms", charted=False),
    Row(key="fixed-p99", label="mode fixed, 1 million wait: lateness, 99 of 100", unit="ms", charted=False),
    Row(key="fixed-memory", label="mode fixed: memory for 1 million", unit="MB", charted=False),
    Row(key="off-produce", label="a produce to an ordinary topic", unit="instructions", charted=False),
    Row(key="off-fetch", label="a fetch of an ordinary topic", unit="instructions", charted=False),
    Row(key="compiled-produce", label="the same compiled, of the processor", unit="instructions", charted=False),
    Row(key="compiled-fetch", label="a fetch compiled", unit="instructions", charted=False),
)


def limit(label: str, key: str, most: float) -> Goal:
    return Goal(label=label, value=(key, OURS), base=most, at_most=1.0)


def at_least(label: str, key: str, least: float) -> Goal:
    return Goal(label=label, value=(key, OURS), base=least, at_least=1.0)


BENCHMARK = Benchmark(
    name="delay",
    title="Messages for later, while up to a million wait",
    rows=(
        *WAITING,
        *(
            Row(key=f"rate-{rate}", label=f"99 of 100 at {rate:,} due a second, while 100,000 wait", unit="ms")
            for rate in RATES
        ),
        Row(key="early", label="the earliest of these, before it was due", unit="ms", charted=False),
        Row(key="accept", label="messages scheduled", unit="1/s"),
        Row(key="herd", label=f"messages delivered, of {HERD:,} due at once", unit="1/s"),
        Row(key="memory", label="memory for a message that waits", unit="B"),
        Row(key="private", label="the same without mapped files", unit="B", charted=False),
        Row(key="restart", label="killed, until it delivers again", unit="ms"),
        *OWN_ROWS,
    ),
    goals=(
        limit("A2: p50 at a million, 1,000 due a second: 5 ms", "p50-near", 5.0),
        limit("A2: p99: 25 ms", "p99-near", 25.0),
        limit("A2: p99.9: 100 ms", "p999-near", 100.0),
        limit("lateness p99 at a million: 25 ms", "p99-1m", 25.0),
        Goal(label="A3: p99 at ten million", value=("p99-10m", OURS), base=("p99-1m", OURS), at_most=1.5),
        *(
            Goal(label=f"p99 at 100,000, beside {name}", value=("p99-100k", OURS), base=("p99-100k", name), at_most=1.0)
            for name in RIVALS
        ),
        *(limit(f"p99 at {rate:,} due a second: 25 ms", f"rate-{rate}", 25.0) for rate in RATES),
        limit("A4: memory for one within the hour: 32 B", "memory-near", 32.0),
        limit("A4: memory for one of a million due tomorrow: 32 B", "memory", 32.0),
        limit("A4: memory for one beyond, at ten million: 1 B", "memory-10m", 1.0),
        limit("A5: mode fixed, memory for a million: 1 MB", "fixed-memory", 1.0),
        limit("A5: mode fixed, p99: 15 ms", "fixed-p99", 15.0),
        at_least(f"A6: 10,000 scheduled a second, for {SUSTAINED_S:g} s", "sustained-accept", 10_000.0),
        at_least(f"A6: 10,000 delivered a second, for {SUSTAINED_S:g} s", "sustained-release", 10_000.0),
        limit(f"A7: {LARGE_HERD:,} due at once are out: 10 s", "herd-out", 10.0),
        Goal(label="A7: another topic meanwhile", value=("beside-herd", OURS), base=("beside-idle", OURS), at_most=2.0),
        limit("A8: restart: 5 s", "restart-snapshot", 5_000.0),
        limit("A8: restart without index and snapshot: 30 s", "restart-rebuild", 30_000.0),
        limit("restart after kill -9: 5 s", "restart", 5_000.0),
        *(
            Goal(label=f"A19: ordinary topics, {name}", value=(key, OURS), base=(key, WITHOUT), at_most=1.01)
            for name, key in (
                ("produce", "off-produce"),
                ("fetch", "off-fetch"),
                ("produce, compiled", "compiled-produce"),
                ("fetch, compiled", "compiled-fetch"),
            )
        ),
    ),
    baseline=REDIS,
    contenders=contenders,
    rounds=1,
)
