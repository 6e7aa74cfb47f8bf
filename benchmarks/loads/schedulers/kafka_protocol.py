"""Messages through confluent-kafka: to ixion, which delays them itself, and to Apache Kafka with a scheduler beside it.

The scheduler is what etf1's kafka-message-scheduler does, in Python: it reads the topic of schedules into memory, and
when one is due it produces the message to its topic and a tombstone to the schedules. After a restart it reads all of
the topic again.
"""

from __future__ import annotations

import heapq
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.loads.broker_servers import ixion_on
from benchmarks.loads.schedulers.scheduler import PATIENCE_S, Scheduler, Start, now_ms
from devtools.kafka import RealKafka

QUIET = {"log_level": 0, "retry.backoff.ms": 10, "reconnect.backoff.max.ms": 100}
IN_FLIGHT = 20_000
IDLE_S = 0.01  # how long the scheduler waits for more schedules at most


class KafkaScheduler:
    early_ms = 0

    def __init__(self, bootstrap: str, pid: int, topic: str, delivered: str, header: str) -> None:
        self.pid = pid
        self._topic = topic
        self._header = header
        self._refusal = ""
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 5, "delivery.report.only.error": True, **QUIET}
        )
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False, **QUIET}
        )
        self._consumer.assign([TopicPartition(delivered, 0, self._end(delivered))])

    def _end(self, topic: str) -> int:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return int(self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1])
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        for number, (due_ms, value) in enumerate(messages):
            while len(self._producer) > IN_FLIGHT:
                self._producer.poll(0.01)
            key = f"{due_ms}-{number}"
            headers: dict[str, str | bytes | None] = {self._header: str(due_ms)}
            self._producer.produce(self._topic, value, key, headers=headers, partition=0, on_delivery=self._answered)
        if self._producer.flush(300):
            raise RuntimeError("not everything was acknowledged")
        if self._refusal:
            raise RuntimeError(self._refusal)

    def _answered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._refusal = str(error)

    def arrivals(self, count: int) -> Iterator[bytes]:
        end = time.monotonic() + PATIENCE_S
        while count:
            message = self._consumer.poll(1)
            if message is not None and not message.error():
                count -= 1
                end = time.monotonic() + PATIENCE_S
                yield bytes(message.value() or b"")
            elif time.monotonic() > end:
                raise RuntimeError(f"{count} messages did not come")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self._consumer.close()


def create(bootstrap: str, topics: dict[str, dict[str, str]]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    known = admin.list_topics(timeout=PATIENCE_S).topics
    new = [NewTopic(name, 1, 1, config=config) for name, config in topics.items() if name not in known]
    for done in admin.create_topics(new).values() if new else ():
        done.result(30)


@contextmanager
def ixion(data: Path) -> Iterator[Scheduler]:
    with ixion_on(str(data)) as server:
        # Ten million, the default limit, may wait in this benchmark, and a few more.
        settings = {"delivery.delay.mode": "record", "delivery.delay.pending.max": "100000000"}
        create(server.bootstrap, {"later": settings})
        made = KafkaScheduler(server.bootstrap, server.pid, "later", "later", "x-deliver-at")
        try:
            yield made
        finally:
            made.close()


def on_kafka(kafka: RealKafka) -> Start:
    """The broker runs on when its scheduler is killed."""

    @contextmanager
    def start(_data: Path) -> Iterator[Scheduler]:
        bootstrap = kafka.bootstrap
        forever = {"cleanup.policy": "compact", "retention.ms": "-1"}
        create(bootstrap, {"schedules": forever, "delivered": {}})
        process = subprocess.Popen([sys.executable, "-m", __name__, bootstrap], stdout=subprocess.PIPE)
        made = KafkaScheduler(bootstrap, process.pid, "schedules", "delivered", "due")
        try:
            yield made
        finally:
            made.close()
            process.kill()
            process.wait()

    return start


def run_scheduler(bootstrap: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "s", **QUIET})
    consumer.assign([TopicPartition("schedules", 0, 0)])
    loaded = int(consumer.get_watermark_offsets(TopicPartition("schedules", 0), timeout=PATIENCE_S)[1])
    position = 0
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **QUIET})
    waiting: dict[bytes, tuple[int, bytes]] = {}
    due: list[tuple[int, bytes]] = []
    while True:
        for message in consumer.consume(1_000, IDLE_S):
            if message.error():
                continue
            position = int(message.offset() or 0) + 1
            key, value = bytes(message.key() or b""), message.value()
            if value is None:
                waiting.pop(key, None)
                continue
            at = int(dict(message.headers() or [])["due"] or 0)
            waiting[key] = (at, bytes(value))
            heapq.heappush(due, (at, key))
        # Before that it has not seen every tombstone, and would deliver again.
        while position >= loaded and due and due[0][0] <= now_ms():
            _, key = heapq.heappop(due)
            found = waiting.pop(key, None)
            if found is not None:
                producer.produce("delivered", found[1], key, partition=0)
                producer.produce("schedules", None, key, partition=0)
        producer.poll(0)


if __name__ == "__main__":
    run_scheduler(sys.argv[1])
