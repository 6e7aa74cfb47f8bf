"""What only ixion is asked: many near due times, a herd beside other clients, hours at full rate, a start from nothing.

Each function starts a broker of its own. The numbers are those of the acceptance tests in docs/delayed.md. One or
more of them by name, without the rest of the benchmark:

    python -m benchmarks.loads.schedulers.extremes herd                                  half a minute
    IXION_BENCH_SUSTAINED=300 python -m benchmarks.loads.schedulers.extremes sustained   six minutes, 10 GB of disk
    python -m benchmarks.loads.schedulers.extremes far                                   ten million: 25 GB of disk
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.loads.broker_servers import ixion_on
from benchmarks.loads.produce_probe import Probe, p99_us
from benchmarks.loads.schedulers.kafka_protocol import QUIET, KafkaScheduler, create, ixion
from benchmarks.loads.schedulers.messages import (
    LEAD_MS,
    VALUE,
    Arrivals,
    fill,
    lateness,
    message,
    part,
    until_delivered,
)
from benchmarks.loads.schedulers.scheduler import PATIENCE_S, Scheduler, now_ms, resident_of

MINUTE_MS = 60_000
MARGIN_MS = 500  # around the measured parts of a herd
DERIVED = ("*.index", "*.timeindex", "*.txnindex", "*.snapshot", "delayed-records*")  # files that a start can make anew
SUSTAINED_S = float(os.environ.get("IXION_BENCH_SUSTAINED", "10"))
SUSTAINED_RATE = 12_000  # messages scheduled a second: a fifth more than the goal
AHEAD_MS = 2_000  # of what is scheduled at that rate
TICK_S = 0.02


@contextmanager
def broker() -> Iterator[tuple[Scheduler, Path]]:
    with tempfile.TemporaryDirectory(prefix="delay-") as folder, ixion(Path(folder)) as scheduler:
        lateness(scheduler, 200, 500)  # nothing that happens once counts
        yield scheduler, Path(folder)


def near(count: int, timed: int) -> Mapping[str, float]:
    """A2 and A4: messages due within the hour, which are in memory, and a thousand due each second."""
    with broker() as (scheduler, _):
        first = count // 10
        fill(scheduler, 0, first, 10 * MINUTE_MS)
        before = resident_of(scheduler.pid)
        fill(scheduler, first, count, 10 * MINUTE_MS)
        memory = (resident_of(scheduler.pid) - before) / (count - first)
        found = lateness(scheduler, timed, 1_000)
    return {
        "memory-near": max(memory, 0.0),
        "p50-near": part(found, 500),
        "p99-near": part(found, 990),
        "p999-near": part(found, 999),
    }


def herd_beside_others(count: int) -> Mapping[str, float]:
    """A7: so many due in the same millisecond, while another client produces to another topic."""
    with tempfile.TemporaryDirectory(prefix="delay-") as folder, ixion_on(folder) as server:
        create(server.bootstrap, {"later": {"delivery.delay.mode": "record"}, "other": {}})
        scheduler = KafkaScheduler(server.bootstrap, server.pid, "later", "later", "x-deliver-at")
        consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "e", **QUIET})
        probe = Probe(int(server.bootstrap.rpartition(":")[2]), "other")
        try:
            due_ms = int(now_ms()) + LEAD_MS + 4_000 + count // 10
            scheduler.schedule([message(due_ms, number, VALUE) for number in range(count)])
            idle_ms = now_ms() + MARGIN_MS
            if idle_ms + 2_000 > due_ms:
                raise RuntimeError("it took too long to schedule them: is the machine busy?")
            time.sleep((due_ms - now_ms()) / 1e3)
            wait_until(lambda: end_of(consumer, "later") >= 2 * count)
            out_ms = now_ms() - due_ms
            taken = probe.stop()
        finally:
            probe.kill()
            scheduler.close()
            consumer.close()
    return {
        "herd-out": out_ms / 1e3,
        "beside-idle": p99_us(taken, idle_ms, due_ms - MARGIN_MS) / 1e3,
        "beside-herd": p99_us(taken, due_ms, due_ms + out_ms) / 1e3,
    }


def sustained(seconds: float = SUSTAINED_S) -> Mapping[str, float]:
    """A6: messages scheduled, and delivered, a second, over a long time."""
    count = int(SUSTAINED_RATE * seconds)
    with broker() as (scheduler, _):
        arrivals = Arrivals(scheduler, count)
        begun = now_ms()
        sent = 0
        while sent < count:
            allowed = min(int((now_ms() - begun) / 1e3 * SUSTAINED_RATE) + 1, count)
            due_ms = int(now_ms()) + AHEAD_MS
            scheduler.schedule([message(due_ms, number, VALUE) for number in range(sent, allowed)])
            sent = allowed
            time.sleep(TICK_S)
        accepted_s = (now_ms() - begun) / 1e3
        found = arrivals.join(count, seconds + PATIENCE_S)
        delivered_s = (arrivals.last_ms - begun - AHEAD_MS) / 1e3
    return {
        "sustained-accept": count / accepted_s,
        "sustained-release": count / delivered_s,
        "sustained-p99": part(found, 990),
    }


def far(count: int) -> Mapping[str, float]:
    """A3 and A4: so many that are due tomorrow.

    Memory is counted from a fifth of them on: the indexes of the last segment of a log take up to 5 MB, however many
    wait.
    """
    with broker() as (scheduler, _):
        first = count // 5
        fill(scheduler, 0, first)
        before = resident_of(scheduler.pid)
        fill(scheduler, first, count)
        memory = max(resident_of(scheduler.pid) - before, 0) / (count - first)
        found = lateness(scheduler, 2_000, 500)
    return {"p50-10m": part(found, 500), "p99-10m": part(found, 990), "memory-10m": memory}


def restart(count: int) -> Mapping[str, float]:
    """A8: killed while so many wait, until it delivers again; and once more without any file that it can make anew."""
    rows: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="delay-") as folder:
        data = Path(folder)
        with ixion(data) as scheduler:
            fill(scheduler, 0, count)
        for key, pattern in (("restart-snapshot", ()), ("restart-rebuild", DERIVED)):
            for path in [path for each in pattern for path in data.glob(f"*/{each}")]:
                path.unlink()
            rows[key] = until_it_delivers(data)
    return rows


def until_it_delivers(data: Path) -> float:
    """Milliseconds from the start of a broker to a message that it delivers; then it is killed."""
    begun = now_ms()
    with ixion(data) as scheduler:
        until_delivered(scheduler)
        taken_ms = now_ms() - begun
        scheduler.kill()
    return taken_ms


def end_of(consumer: Consumer, topic: str) -> int:
    return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])


def wait_until(reached: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not reached():
        if time.monotonic() > end:
            raise RuntimeError("the messages did not come")
        time.sleep(0.01)


BY_NAME: Mapping[str, Callable[[], Mapping[str, float]]] = {
    "near": lambda: near(1_000_000, 10_000),
    "far": lambda: far(10_000_000),
    "herd": lambda: herd_beside_others(100_000),
    "sustained": sustained,
    "restart": lambda: restart(1_000_000),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BY_NAME:
        for key, value in BY_NAME[name]().items():
            print(f"{key}  {value:,.3f}", flush=True)
