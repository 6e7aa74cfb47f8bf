"""Every broker of a cluster is stopped and started in turn, while clients of several kinds write and read.

Each kind has a topic of its own, a producer with acks=all and a member of a group. In the end every acknowledged record
is at the offset that its acknowledgement named, in the order in which the producer sent it; the group has seen it, in
order; and all replicas of a partition are the same bytes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import confluent_kafka
from confluent_kafka import KafkaError, Message

from ixion.clients import Consumer, Producer, TopicPartition, aio
from ixion.testing import Broker

PARTITIONS: Final = 2
AT_A_TIME: Final = 10  # records on their way
PATIENCE_S: Final = 180.0
UNKNOWN: Final = -1  # the offset of a record whose first answer was lost: it was acknowledged as a repeat

Records = dict[int, list[tuple[int, bytes]]]  # partition -> offset and value, in the order in which they came


class Kind(ABC):
    """Clients of one kind on two threads: one writes, one reads."""

    name: str

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"rolling-{self.name}"
        self.acknowledged: Records = {number: [] for number in range(PARTITIONS)}
        self.seen: Records = {number: [] for number in range(PARTITIONS)}
        self.faults: list[str] = []
        self.written = threading.Event()  # enough
        self.read = threading.Event()  # everything
        self._threads = [
            threading.Thread(target=self._guard, args=(work,), name=f"{self.name}-{work.__name__}", daemon=True)
            for work in (self.write_all, self.read_all)
        ]

    @abstractmethod
    def write_all(self) -> None: ...

    @abstractmethod
    def read_all(self) -> None: ...

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def missing(self) -> int:
        """Acknowledged records that the group has not seen."""
        return sum(
            len({value for _, value in self.acknowledged[number]} - {value for _, value in self.seen[number]})
            for number in range(PARTITIONS)
        )

    def end(self) -> None:
        self.written.set()
        self._threads[0].join(PATIENCE_S)
        until(lambda: not self.missing() or bool(self.faults), lambda: f"{self.missing()} unread by {self.name}")
        self.read.set()
        self._threads[1].join(PATIENCE_S)
        alive = [thread.name for thread in self._threads if thread.is_alive()]
        assert not alive, f"still running: {alive}"
        assert not self.faults, self.faults

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.faults.append(f"{self.name}: {error!r}")


class Confluent(Kind):
    name = "confluent"

    def write_all(self) -> None:
        settings = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 0, "linger.ms": 1}
        producer = confluent_kafka.Producer(settings)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.faults.append(f"{self.name}: {error}")
            else:
                offset = message.offset()
                place = (UNKNOWN if offset is None else offset, message.value() or b"")
                self.acknowledged[message.partition() or 0].append(place)

        number = 0
        while not self.written.is_set() and not self.faults:
            for partition in range(PARTITIONS):
                producer.produce(self.topic, b"%d" % number, partition=partition, on_delivery=delivered)
            number += 1
            producer.poll(0.005)
            while len(producer) > AT_A_TIME and not self.faults:
                producer.poll(0.05)
        if producer.flush(PATIENCE_S):
            self.faults.append(f"{self.name}: {len(producer)} records are still on their way")

    def read_all(self) -> None:
        settings = {"bootstrap.servers": self.bootstrap, "group.id": self.topic, "log_level": 0}
        consumer = confluent_kafka.Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe([self.topic])
        while not self.read.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.seen[message.partition() or 0].append((message.offset() or 0, message.value() or b""))
        consumer.close()


class Ours(Kind):
    name = "ixion"

    def write_all(self) -> None:
        number = 0
        with Producer(self.bootstrap, acks="all", linger_ms=1) as producer:
            while not self.written.is_set():
                sent = []
                for _ in range(AT_A_TIME // PARTITIONS):
                    for partition in range(PARTITIONS):
                        value = b"%d" % number
                        sent.append((partition, value, producer.send(self.topic, value=value, partition=partition)))
                    number += 1
                for partition, value, future in sent:
                    self.acknowledged[partition].append((future.result(PATIENCE_S).offset, value))

    def read_all(self) -> None:
        with Consumer(self.bootstrap, group=self.topic, topics=[self.topic], auto_offset_reset="earliest") as consumer:
            while not self.read.is_set():
                for record in consumer.poll(0.2):
                    self.seen[record.partition].append((record.offset, record.value or b""))


class OursOnAsyncio(Kind):
    name = "ixion-aio"

    def write_all(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        number = 0
        async with aio.Producer(self.bootstrap, acks="all", linger_ms=1) as producer:
            while not self.written.is_set():
                sent = []
                for _ in range(AT_A_TIME // PARTITIONS):
                    for partition in range(PARTITIONS):
                        value = b"%d" % number
                        sent.append(
                            (partition, value, await producer.send(self.topic, value=value, partition=partition))
                        )
                    number += 1
                for partition, value, future in sent:
                    self.acknowledged[partition].append(((await future).offset, value))

    def read_all(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        async with aio.Consumer(
            self.bootstrap, group=self.topic, topics=[self.topic], auto_offset_reset="earliest"
        ) as consumer:
            while not self.read.is_set():
                for record in await consumer.poll(0.2):
                    self.seen[record.partition].append((record.offset, record.value or b""))


KINDS: Final[tuple[type[Kind], ...]] = (Confluent, Ours, OursOnAsyncio)


def roll(kinds: Iterable[Kind], brokers: Mapping[int, Broker], healthy: Callable[[], None], at_least: int) -> None:
    """Restart every broker while all kinds write; `at_least` records of each kind are acknowledged in between."""
    running = list(kinds)

    def more() -> None:
        wanted = {kind: kind.count + at_least for kind in running}
        until(
            lambda: all(kind.count >= wanted[kind] or kind.faults for kind in running),
            lambda: f"acknowledged: { {kind.name: (kind.count, wanted[kind]) for kind in running} }",
        )

    for kind in running:
        kind.start()
    more()
    for broker in brokers.values():
        broker.stop()
        more()
        broker.start()
        healthy()
        more()
    for kind in running:
        kind.end()


def check(kind: Kind, homes: Iterable[Path]) -> None:
    """`homes`: the log directories of the brokers, which all have every partition."""
    with Consumer(kind.bootstrap) as consumer:
        for number in range(PARTITIONS):
            place = TopicPartition(kind.topic, number)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            there: dict[int, bytes] = {}
            while consumer.position(place) < end:
                there.update((record.offset, record.value or b"") for record in consumer.poll(1.0))
            check_partition(kind, number, list(there.values()), there)
            until(
                lambda at=number: len({log(home, kind.topic, at) for home in homes}) == 1,  # type: ignore[misc]
                lambda at=number: f"replicas of {kind.topic}-{at} differ",  # type: ignore[misc]
            )


def check_partition(kind: Kind, number: int, values: list[bytes], there: Mapping[int, bytes]) -> None:
    acknowledged = kind.acknowledged[number]
    sent = [int(value) for _, value in acknowledged]
    assert sent == sorted(sent)
    wanted = {value for _, value in acknowledged}
    assert [value for value in values if value in wanted] == [value for _, value in acknowledged]
    assert len(values) == len(set(values)), "a record is there twice"
    for offset, value in acknowledged:
        assert offset == UNKNOWN or there[offset] == value, (kind.name, number, offset, value)
    first_seen = list(dict.fromkeys(offset for offset, _ in kind.seen[number]))
    assert first_seen == sorted(first_seen), f"{kind.name} has read partition {number} in another order"


def log(home: Path, topic: str, partition: int) -> bytes:
    return b"".join(file.read_bytes() for file in sorted((home / f"{topic}-{partition}").glob("*.log")))


def until(holds: Callable[[], bool], what: Callable[[], str]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s, f"not within {PATIENCE_S:.0f} s: {what()}"
        time.sleep(0.02)
