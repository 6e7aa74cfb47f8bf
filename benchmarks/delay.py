"""Messages for later: how late they come while very many wait, beside a sorted set of Redis with a poller.

A round: `BACKLOG` records of 1,000 bytes are scheduled for tomorrow, as fast as they are acknowledged; then `TIMED`
more for the next seconds, `RATE` a second, and a consumer notes when each arrives. Lateness is arrival minus due time
by the clock of this process, so it includes the client. Then the server is killed and started again, until it takes a
record.

Memory is what the process of the server grew by, for each record that waits. Redis keeps the records in memory.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session
from benchmarks.loads.broker_servers import Server, ixion_on
from benchmarks.loads.redis_schedules import Poller, Redis, redis_folder, redis_on, wait_ready

OURS, REDIS = "ixion", "Redis, polled every 10 ms"
BACKLOG, TIMED, RATE = 100_000, 3_000, 500
TOMORROW_MS = 24 * 3_600_000
LEAD_MS = 2_000
VALUE = bytes(1_000)


def now_ms() -> float:
    return time.time_ns() / 1e6


class Lateness:
    def __init__(self) -> None:
        self.late_ms: list[float] = []

    def note(self, due_ms: float) -> None:
        self.late_ms.append(now_ms() - due_ms)

    def figures(self) -> dict[str, float]:
        found = sorted(self.late_ms)
        if found[0] < 0:
            raise RuntimeError(f"a record came {-found[0]:.3f} ms early")
        return {"p50": found[len(found) // 2], "p99": found[len(found) * 99 // 100], "max": found[-1]}


def timed(count: int) -> list[int]:
    """Due times from `LEAD_MS` on, `RATE` a second."""
    first = int(now_ms()) + LEAD_MS
    return [first + number * 1_000 // RATE for number in range(count)]


def ours(backlog: int, count: int) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory() as data:
        with ixion_on(data) as server:
            found = ours_running(server, backlog, count)
            os.kill(server.pid, signal.SIGKILL)
        with ixion_on(data) as server:
            producer = Producer({"bootstrap.servers": server.bootstrap, "retry.backoff.ms": 10, "log_level": 0})
            producer.produce("later", b"x", headers={"x-deliver-after-ms": "1000"})
            producer.flush(120)
            found["restart"] = (time.time() - server.started) * 1000
    return found


def ours_running(server: Server, backlog: int, count: int) -> dict[str, float]:
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    topic = NewTopic("later", 1, 1, config={"delivery.delay.mode": "record"})
    admin.create_topics([topic])["later"].result(30)
    producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5, "log_level": 0})
    producer.produce("later", VALUE, headers={"x-deliver-after-ms": str(TOMORROW_MS)})
    producer.flush(30)
    before = server.resident_mb()
    begun = time.perf_counter()
    for number in range(backlog):
        while len(producer) > 10_000:
            producer.poll(0.01)
        producer.produce("later", VALUE, headers={"x-deliver-after-ms": str(TOMORROW_MS + number)})
    producer.flush(300)
    found = {"accept": backlog / (time.perf_counter() - begun)}
    found["memory"] = max(server.resident_mb() - before, 0) * 2**20 / backlog
    consumer = Consumer(
        {"bootstrap.servers": server.bootstrap, "group.id": "g", "fetch.wait.max.ms": 500, "log_level": 0}
    )
    consumer.assign([TopicPartition("later", 0, backlog)])
    lateness = Lateness()
    for due_ms in timed(count):
        producer.produce("later", b"x", headers={"x-deliver-at": str(due_ms)})
    producer.flush(60)
    end = time.monotonic() + 120
    while len(lateness.late_ms) < count and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and not message.error():
            lateness.note(int(dict(message.headers() or [])["x-scheduled-for"] or 0))
    consumer.close()
    return found | lateness.figures()


def redis(backlog: int, count: int) -> Mapping[str, float]:
    with redis_folder() as (data, port):
        with redis_on(data, port) as server:
            wait_ready(port)
            found = redis_running(server, port, backlog, count)
            os.kill(server.pid, signal.SIGKILL)
        with redis_on(data, port) as server:
            wait_ready(port)
            found["restart"] = (time.time() - server.started) * 1000
    return found


def redis_running(server: Server, port: int, backlog: int, count: int) -> dict[str, float]:
    client = Redis(port)
    before = server.resident_mb()
    begun = time.perf_counter()
    for start in range(0, backlog, 1_000):
        tomorrow = int(now_ms()) + TOMORROW_MS
        some = range(start, min(start + 1_000, backlog))
        client.send(*((b"ZADD", b"later", b"%d" % (tomorrow + number), b"%d:" % number + VALUE) for number in some))
        for _ in some:
            client.receive()
    found = {"accept": backlog / (time.perf_counter() - begun)}
    found["memory"] = (server.resident_mb() - before) * 2**20 / backlog
    lateness = Lateness()

    def work() -> None:
        worker = Redis(port)
        while len(lateness.late_ms) < count:
            lateness.note(int(worker.call(b"BLPOP", b"ready", b"60")[1].partition(b":")[0]))
        worker.close()

    poller = Poller(port)
    working = threading.Thread(target=work)
    working.start()
    for number, due_ms in enumerate(timed(count)):
        client.call(b"ZADD", b"later", b"%d" % due_ms, b"%d:%d" % (due_ms, number))
    working.join(120)
    poller.stop()
    client.close()
    return found | lateness.figures()


def contenders(session: Session) -> Mapping[str, Contender]:
    backlog = 2_000 if session.quick else BACKLOG
    count = 500 if session.quick else TIMED
    return {OURS: lambda: ours(backlog, count), REDIS: lambda: redis(backlog, count)}


BENCHMARK = Benchmark(
    name="delay",
    title="Messages for later, while 100,000 wait",
    rows=(
        Row(key="p50", label="lateness, median", unit="ms"),
        Row(key="p99", label="lateness, 99 of 100", unit="ms"),
        Row(key="max", label="lateness, the worst", unit="ms", charted=False),
        Row(key="accept", label="records scheduled", unit="records/s"),
        Row(key="memory", label="memory for a record that waits", unit="B"),
        Row(key="restart", label="killed, until it takes a record again", unit="ms"),
    ),
    goals=(
        Goal(label="lateness p99: 25 ms", value=("p99", OURS), base=25.0, at_most=1.0),
        Goal(label="lateness p99, beside Redis", value=("p99", OURS), base=("p99", REDIS), at_most=1.0),
        Goal(label="10,000 scheduled a second", value=("accept", OURS), base=10_000.0, at_least=1.0),
        Goal(label="memory beside Redis", value=("memory", OURS), base=("memory", REDIS), at_most=0.5),
        Goal(label="restart: 5 s", value=("restart", OURS), base=5_000.0, at_most=1.0),
    ),
    baseline=REDIS,
    contenders=contenders,
    rounds=3,
)
