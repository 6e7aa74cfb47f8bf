"""A broker that is killed again and again while a producer writes, and what is left at the end.

One producer lives through all rounds: it sends again what was not acknowledged when the broker died, so an
idempotent one meets a broker that must know from its logs alone what it has already written. Between two lives a fault
may be done to the files: bytes of a batch that never got whole, an index that is gone.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.kafka import free_port
from devtools.stalls import stalls
from tests.broker.served import Served
from tests.kill.history import History

PARTITIONS = 3
TOPIC = "rounds"
AHEAD = 500  # records that are under way at most


class Load:
    """Writes as fast as it is acknowledged, until it is stopped."""

    def __init__(self, bootstrap: str, history: History, settings: dict[str, Any]) -> None:
        self._history = history
        self._settings = {
            "bootstrap.servers": bootstrap,
            "linger.ms": 2,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 50,  # or it waits for a second while the broker lives for half of one
            "message.timeout.ms": 120_000,
            "socket.timeout.ms": 10_000,
            "log_level": 0,
            **settings,
        }
        self.failed: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        producer = Producer(self._settings)
        number = 0
        while not self._stop.is_set():
            producer.poll(0.0005)
            if len(producer) < AHEAD:
                value = b"%d" % number
                self._history.sent[value] = number
                producer.produce(TOPIC, value, partition=number % PARTITIONS, on_delivery=self._told)
                number += 1
        left = producer.flush(60)
        if left:
            self.failed.append(f"{left} records were never answered")

    def _told(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self._history.told[message.value()] = (message.partition(), message.offset())
        else:
            self.failed.append(str(error))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def create_topic(bootstrap: str, **config: str) -> None:
    wish = NewTopic(TOPIC, PARTITIONS, 1, config=config)
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: with it goes what it has been asked
    admin.create_topics([wish])[TOPIC].result(20)


def read_all(bootstrap: str) -> list[tuple[int, int, bytes]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found = []
    ends = 0
    while ends < PARTITIONS:
        message = consumer.poll(20)
        assert message is not None, "neither a record nor an end"
        error = message.error()
        if error is None:
            found.append((message.partition() or 0, message.offset() or 0, message.value() or b""))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ends += 1
    consumer.close()
    return sorted(found)


Fault = Callable[[Path, random.Random], None]


def no_fault(data: Path, chance: random.Random) -> None:
    pass


def torn_write(data: Path, chance: random.Random) -> None:
    """Half a batch at the end of the last segment: its header, as that of the first batch, and noise."""
    for folder in data.glob(f"{TOPIC}-*"):
        file = max(folder.glob("*.log"))
        content = file.read_bytes()
        if content:
            file.write_bytes(content + content[: chance.randrange(1, 70)] + chance.randbytes(chance.randrange(40)))


def lost_indexes(data: Path, chance: random.Random) -> None:
    for file in [*data.glob(f"{TOPIC}-*/*index"), *data.glob(f"{TOPIC}-*/*.snapshot")]:
        if chance.random() < 0.5:
            file.unlink()


FAULTS: dict[str, Fault] = {"none": no_fault, "torn write": torn_write, "lost indexes": lost_indexes}


def live_through(
    path: Path,
    rounds: int,
    settings: dict[str, Any],
    fault: Fault = no_fault,
    *,
    seed: int = 0,
    said: Callable[[str], None] = lambda _line: None,
    **topic: str,
) -> tuple[History, list[str]]:
    """The history, and what went wrong on the way. Each life ends while records are being acknowledged."""
    chance = random.Random(seed)
    history = History()
    words = ("--port", str(free_port()), "--set", "log.segment.bytes=200000", "--set", "log.index.interval.bytes=512")
    load: Load | None = None
    try:
        for number in range(rounds):
            begun = time.perf_counter()
            with Served(path, *words) as served:
                ready = time.perf_counter() - begun
                if load is None:
                    create_topic(served.bootstrap, **topic)
                    load = Load(served.bootstrap, history, settings)
                before = len(history.told)
                wanted = before + chance.randrange(1, 3000)
                patience = time.monotonic() + 15
                while len(history.told) < wanted and time.monotonic() < patience:
                    time.sleep(0.001)
                served.process.send_signal(signal.SIGKILL)
                served.process.wait()
            said(f"round {number + 1}: ready after {ready * 1e3:.0f} ms, {len(history.told) - before} acknowledged")
            (data,) = {entry.parent.parent for entry in path.rglob("*.log")}
            fault(data, chance)
        with Served(path, *words) as served:
            if load is not None:
                load.stop()
            history.found = read_all(served.bootstrap)
            code, _, err = served.stop()
            assert code == 0, err
            assert stalls(err) == []
    finally:
        if load is not None:
            load.stop()
    return history, load.failed if load is not None else []
