"""Messages for later: how late they come while very many wait, beside four other ways to have that.

A round: messages of 1,000 bytes are scheduled for tomorrow until 10,000, 100,000 and a million wait, as fast as they
are acknowledged. At each of these, `TIMED` more are scheduled for the next seconds, `RATE` a second, and a consumer
notes when each arrives; at 100,000 also `FAST` a second. Then `HERD` that are due at the same moment. At last the
process that keeps what waits is killed and started again, until it delivers a message.

Lateness is arrival minus due time by the clock of this process, so it includes the client. Memory is what the process
that keeps what waits grew by, for each message. IXION_BENCH_PENDING=10000000 goes on to ten million, ours only.

What ordinary topics pay for the feature is counted, in instructions of the interpreter for a produce and for a fetch,
beside a copy of the sources from which the feature is cut (`loads/without_delays`).
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from benchmarks.loads.off_instructions import count_instructions
from benchmarks.loads.schedulers.kafka_protocol import ixion, on_kafka
from benchmarks.loads.schedulers.nats import nats
from benchmarks.loads.schedulers.rabbitmq import rabbitmq
from benchmarks.loads.schedulers.redis import redis
from benchmarks.loads.schedulers.scheduler import PATIENCE_S, Scheduler, Start, now_ms
from benchmarks.loads.without_delays import CHECKOUT, write_without_delays
from devtools.kafka import RealKafka

OURS = "ixion"
NATS = "NATS JetStream 2.12"
REDIS = "Redis, polled every 10 ms"
RABBIT = "RabbitMQ, TTL and dead letters"
ETF1 = "scheduler on Apache Kafka"
WITHOUT = "ixion without delays"
BACKLOGS = {"10k": 10_000, "100k": 100_000, "1m": 1_000_000}
MOST = {"10m": 10_000_000}
TIMED, RATE, FAST = 2_000, 500, 5_000  # messages, and how many are due in a second
FAST_AT = "100k"
HERD = 20_000
TOMORROW_MS = 24 * 3_600_000
LEAD_MS = 1_500
VALUE = bytes(1_000)


class Arrivals:
    """A consumer on a thread of its own, that notes when messages come."""

    def __init__(self, scheduler: Scheduler, count: int) -> None:
        self.late_ms: list[float] = []
        self._thread = threading.Thread(target=self._run, args=(scheduler, count), daemon=True)
        self._thread.start()

    def _run(self, scheduler: Scheduler, count: int) -> None:
        for payload in scheduler.arrivals(count):
            self.late_ms.append(now_ms() - int(payload.partition(b":")[0]))

    def join(self, count: int) -> list[float]:
        self._thread.join(PATIENCE_S)
        if len(self.late_ms) < count:
            raise RuntimeError(f"{count - len(self.late_ms)} of {count} messages did not come")
        found = sorted(self.late_ms)
        if found[0] < 0:
            raise RuntimeError(f"a message came {-found[0]:.3f} ms early")
        return found


def message(due_ms: int, number: int, value: bytes = b"") -> tuple[int, bytes]:
    return due_ms, b"%d:%d:%b" % (due_ms, number, value)


def lateness(scheduler: Scheduler, count: int, rate: int) -> tuple[float, float]:
    """Median and 99th percentile, in milliseconds."""
    arrivals = Arrivals(scheduler, count)
    first = int(now_ms()) + LEAD_MS
    scheduler.schedule([message(first + number * 1_000 // rate, number) for number in range(count)])
    found = arrivals.join(count)
    return found[len(found) // 2], found[len(found) * 99 // 100]


def fill(scheduler: Scheduler, start: int, count: int) -> None:
    tomorrow = int(now_ms()) + TOMORROW_MS
    for first in range(start, count, 10_000):
        some = range(first, min(first + 10_000, count))
        scheduler.schedule([message(tomorrow + number, number, VALUE) for number in some])


def herd(scheduler: Scheduler, count: int) -> float:
    """Messages a second, of many that are due at the same moment."""
    arrivals = Arrivals(scheduler, count)
    due_ms = int(now_ms()) + LEAD_MS + count // 5
    scheduler.schedule([message(due_ms, number, VALUE) for number in range(count)])
    return count / max(arrivals.join(count)[-1], 1.0) * 1_000


def measure(start: Start, backlogs: Mapping[str, int], scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    count = max(int(TIMED * scale), 200)
    with tempfile.TemporaryDirectory(prefix="delay-") as folder:
        data = Path(folder)
        with start(data) as scheduler:
            lateness(scheduler, 50, RATE)  # nothing that happens once counts
            before, have = scheduler.resident_bytes(), 0
            for key, backlog in backlogs.items():
                begun = time.perf_counter()
                fill(scheduler, have, backlog)
                rows["accept"] = (backlog - have) / (time.perf_counter() - begun)
                have = backlog
                rows["memory"] = max(scheduler.resident_bytes() - before, 0) / have
                rows[f"p50-{key}"], rows[f"p99-{key}"] = lateness(scheduler, count, RATE)
                if key == FAST_AT:
                    _, rows["fast"] = lateness(scheduler, count * 5, FAST)
            rows["herd"] = herd(scheduler, max(int(HERD * scale), 1_000))
            scheduler.kill()
        begun = time.perf_counter()
        with start(data) as scheduler:
            arrivals = Arrivals(scheduler, 1)
            scheduler.schedule([message(int(now_ms()), 0)])
            arrivals.join(1)
            rows["restart"] = (time.perf_counter() - begun) * 1_000
    return rows


def with_delays(backlogs: Mapping[str, int], scale: float) -> Mapping[str, float]:
    return {**measure(ixion, backlogs, scale), **off(CHECKOUT / "src")}


def without_delays() -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="delay-") as folder:
        return off(write_without_delays(Path(folder)))


def off(tree: Path) -> Mapping[str, float]:
    produce, fetch = count_instructions(tree)
    return {"off-produce": produce, "off-fetch": fetch}


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


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.1 if session.quick else 1.0
    backlogs = {key: max(int(backlog * scale**2), 500) for key, backlog in BACKLOGS.items()}
    ours = dict(backlogs)
    if int(os.environ.get("IXION_BENCH_PENDING", "0")) >= MOST["10m"]:
        ours |= MOST
    kafka = session.enter(running_kafka())
    return {
        OURS: partial(with_delays, ours, scale),
        WITHOUT: without_delays,
        NATS: partial(measure, nats, backlogs, scale),
        REDIS: partial(measure, redis, backlogs, scale),
        RABBIT: partial(measure, rabbitmq, backlogs, scale),
        ETF1: partial(measure, on_kafka(kafka), backlogs, scale),
    }


WORDS = {"10k": "10,000", "100k": "100,000", "1m": "1 million", "10m": "10 million"}

BENCHMARK = Benchmark(
    name="delay",
    title="Messages for later, while up to a million wait",
    rows=(
        *(
            row
            for key in (*BACKLOGS, *MOST)
            for row in (
                Row(key=f"p50-{key}", label=f"lateness while {WORDS[key]} wait, median", unit="ms", charted=False),
                Row(key=f"p99-{key}", label=f"lateness while {WORDS[key]} wait, 99 of 100", unit="ms"),
            )
        ),
        Row(key="fast", label=f"the same at {FAST:,} due a second, while 100,000 wait", unit="ms"),
        Row(key="accept", label="messages scheduled", unit="1/s"),
        Row(key="herd", label=f"messages delivered, of {HERD:,} due at once", unit="1/s"),
        Row(key="memory", label="memory for a message that waits", unit="B"),
        Row(key="restart", label="killed, until it delivers again", unit="ms"),
        Row(key="off-produce", label="a produce to an ordinary topic", unit="instructions", charted=False),
        Row(key="off-fetch", label="a fetch of an ordinary topic", unit="instructions", charted=False),
    ),
    goals=(
        Goal(label="lateness p99 at a million: 25 ms", value=("p99-1m", OURS), base=25.0, at_most=1.0),
        Goal(label="p99 at ten million", value=("p99-10m", OURS), base=("p99-1m", OURS), at_most=1.5),
        *(
            Goal(label=f"p99 at 100,000, beside {name}", value=("p99-100k", OURS), base=("p99-100k", name), at_most=1.0)
            for name in (NATS, REDIS, RABBIT, ETF1)
        ),
        Goal(label="10,000 scheduled a second", value=("accept", OURS), base=10_000.0, at_least=1.0),
        Goal(label="10,000 delivered a second", value=("herd", OURS), base=10_000.0, at_least=1.0),
        Goal(label="memory for one: 32 B", value=("memory", OURS), base=32.0, at_most=1.0),
        *(
            Goal(label=f"ordinary topics, {name}", value=(key, OURS), base=(key, WITHOUT), at_most=1.01)
            for name, key in (("produce", "off-produce"), ("fetch", "off-fetch"))
        ),
        Goal(label="restart: 5 s", value=("restart", OURS), base=5_000.0, at_most=1.0),
    ),
    baseline=REDIS,
    contenders=contenders,
    rounds=1,
)
