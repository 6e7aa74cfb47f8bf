"""A9 with a real broker: killed again and again (SIGKILL) while records are scheduled and delivered.

An idempotent producer lives through all rounds. At the end each record that was acknowledged has been delivered, once,
and a consumer that read all the time saw none before its time.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.kafka import free_port
from tests.broker.served import Served

ROUNDS = int(os.environ.get("IXION_DELAY_KILLS", "3"))
QUICK = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 20, "log_level": 0}


class Load:
    """Schedules records for the next second, as fast as they are acknowledged, and reads what is delivered."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: dict[bytes, int] = {}
        self.failed: list[str] = []
        self.early: list[tuple[bytes, int]] = []
        self._bootstrap = bootstrap
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._read)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        chance = Random(5)
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 2, **QUICK})
        number = 0
        while not self._ends.is_set():
            producer.poll(0.001)
            if len(producer) < 100:
                number += 1
                producer.produce(
                    "t",
                    b"%d" % number,
                    headers={"x-deliver-after-ms": str(chance.randrange(1_000))},
                    on_delivery=self._told,
                )
        if producer.flush(60):
            self.failed.append("records were never answered")

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged[message.value() or b""] = message.offset() or 0
        else:
            self.failed.append(str(error))

    def _read(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "live", **QUICK})
        consumer.assign([TopicPartition("t", 0, 0)])
        while not self._ends.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                due_ms = int(dict(message.headers() or [])["x-scheduled-for"] or 0)
                ahead_ms = due_ms - time.time_ns() // 1_000_000
                if ahead_ms > 0:
                    self.early.append((message.value() or b"", ahead_ms))
        consumer.close()

    def stop(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()


def read_all(bootstrap: str, wanted: set[bytes]) -> list[tuple[bytes, int]]:
    """Values and handles, until all that are wanted are there and the end is reached."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "end", "enable.partition.eof": True, **QUICK})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[tuple[bytes, int]] = []
    missing = set(wanted)
    patience = time.monotonic() + 60
    while time.monotonic() < patience:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            if not missing:
                break
            continue
        value = message.value() or b""
        missing.discard(value)
        found.append((value, int(dict(message.headers() or [])["x-schedule-offset"] or -1)))
    consumer.close()
    return found


def test_a9_a_broker_that_is_killed_again_and_again_delivers_each_record_once(tmp_path: Path) -> None:
    chance = Random(7)
    words = ("--port", str(free_port()), "--set", "log.segment.bytes=100000")
    load: Load | None = None
    for _ in range(ROUNDS):
        with Served(tmp_path, *words) as served:
            if load is None:
                topic = NewTopic("t", 1, 1, config={"delivery.delay.mode": "record"})
                admin = AdminClient({"bootstrap.servers": served.bootstrap, "log_level": 0})
                admin.create_topics([topic])["t"].result(30)
                load = Load(served.bootstrap)
            wanted = len(load.acknowledged) + chance.randrange(100, 1_500)
            patience = time.monotonic() + 20
            while len(load.acknowledged) < wanted and time.monotonic() < patience:
                time.sleep(0.001)
            served.process.send_signal(signal.SIGKILL)
            served.process.wait()
    assert load is not None
    with Served(tmp_path, *words) as served:
        load.stop()
        found = read_all(served.bootstrap, set(load.acknowledged))
        served.stop()
    assert load.failed == []
    assert load.early == []
    assert len(load.acknowledged) > 100
    counts = Counter(value for value, _ in found)
    assert set(load.acknowledged) <= set(counts), "nothing that was acknowledged is lost"
    assert set(counts.values()) == {1}, "each is delivered once"
    handles = dict(found)
    assert all(handles[value] == offset for value, offset in load.acknowledged.items())
