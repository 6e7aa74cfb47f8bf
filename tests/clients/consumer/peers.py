"""Members of one group by different clients, each on a thread of its own, or in a JVM: what they read, they commit.

All use the range assignor and read what is committed. A record that one of them has read may come again after a
rebalance; none may be left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import confluent_kafka

from devtools import jars
from devtools.jvm import QUICK, compile_java, java_command
from devtools.parts import need
from ixion.clients import Consumer, aio
from ixion.clients.core.consumer.errors import CommitFailedError

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError as KafkaPythonError

JAVA = Path(__file__).parent.parent / "java" / "GroupPeer.java"
KAFKA = "kafka-3.9.1"
BEAT_MS = 100
POLL_S = 0.05


class Peer:
    """`seen` are the values that it has read, `held` the number of its partitions.

    `acknowledged` are the offsets of the last commit that the broker has acknowledged, for clients that tell.
    """

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.bootstrap, self.group, self.topic = bootstrap, group, topic
        self.seen: list[bytes] = []
        self.held = 0
        self.acknowledged: dict[int, int] = {}
        self.fault: BaseException | None = None
        self.ended = threading.Event()
        self._runner = threading.Thread(target=self._run, name=type(self).__name__)
        self._runner.start()

    def close(self) -> None:
        """Leave the group; what went wrong is raised."""
        self.ended.set()
        self.join()
        if self.fault is not None:
            raise self.fault

    def join(self) -> None:
        self._runner.join()

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as fault:
            self.fault = fault

    def work(self) -> None:
        raise NotImplementedError


class Ours(Peer):
    def work(self) -> None:
        with Consumer(
            self.bootstrap,
            group=self.group,
            topics=[self.topic],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            heartbeat_interval_ms=BEAT_MS,
            partition_assignment_strategy=["range"],
        ) as consumer:
            while not self.ended.is_set():
                self.seen += [record.value for record in consumer.poll(POLL_S)]
                self.held = len(consumer.assignment())
                with contextlib.suppress(CommitFailedError):
                    consumer.commit()


class OursOnAsyncio(Peer):
    def work(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        async with aio.Consumer(
            self.bootstrap,
            group=self.group,
            topics=[self.topic],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            heartbeat_interval_ms=BEAT_MS,
            partition_assignment_strategy=["range"],
        ) as consumer:
            while not self.ended.is_set():
                self.seen += [record.value for record in await consumer.poll(POLL_S)]
                self.held = len(consumer.assignment())
                with contextlib.suppress(CommitFailedError):
                    await consumer.commit()


class Librdkafka(Peer):
    def work(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.group,
                "partition.assignment.strategy": "range",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": BEAT_MS,
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([self.topic])
        while not self.ended.is_set():
            message = consumer.poll(POLL_S)
            self.held = len(consumer.assignment())
            if message is not None and message.error() is None:
                self.seen.append(message.value() or b"")
                with contextlib.suppress(confluent_kafka.KafkaException):
                    consumer.commit(message=message, asynchronous=False)
        consumer.close()


class KafkaPython(Peer):
    def work(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            heartbeat_interval_ms=BEAT_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        # If it joins before it knows the topic, it assigns nothing, and keeps to that.
        while not self.ended.is_set() and not consumer.partitions_for_topic(self.topic):
            pass
        consumer.subscribe([self.topic])
        while not self.ended.is_set():
            found: dict[Any, list[Any]] = consumer.poll(timeout_ms=int(POLL_S * 1000))
            self.seen += [record.value for records in found.values() for record in records]
            self.held = len(consumer.assignment())
            # Each time, since the last one may have met a rebalance. Of partitions that it has lost it commits nothing.
            with contextlib.suppress(KafkaPythonError):
                ends = {place.partition: consumer.position(place) for place in consumer.assignment()}
                consumer.commit()
                self.acknowledged = {number: end for number, end in ends.items() if end is not None}
        consumer.close()


class Aiokafka(Peer):
    def work(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
        from aiokafka.errors import KafkaError as TheirError

        consumer = AIOKafkaConsumer(
            self.topic,
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            heartbeat_interval_ms=BEAT_MS,
            partition_assignment_strategy=[AiokafkaRange],
        )
        await consumer.start()
        while not self.ended.is_set():
            found = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
            self.seen += [record.value for records in found.values() for record in records]
            self.held = len(consumer.assignment())
            if found:
                with contextlib.suppress(TheirError):
                    await consumer.commit()
        await consumer.stop()


class Java(Peer):
    """Kafka's own client."""

    def work(self) -> None:
        need(KAFKA)
        path = jars.classpath(KAFKA)
        command = java_command(
            "GroupPeer",
            *(self.bootstrap, self.group, self.topic),
            classpath=f"{compile_java(JAVA, path)}:{path}",
            options=QUICK,
        )
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            reading = threading.Thread(target=self._follow, args=(process.stdout,))
            reading.start()
            self.ended.wait()
            process.stdin.write(b"\n")
            process.stdin.flush()
            reading.join()

    def _follow(self, lines: IO[bytes]) -> None:
        for line in lines:
            word, _, rest = line.strip().partition(b" ")
            if word == b"assigned":
                self.held = int(rest)
            elif word == b"value":
                self.seen.append(rest)


CLIENTS: dict[str, Callable[[str, str, str], Peer]] = {
    "ixion": Ours,
    "ixion.aio": OursOnAsyncio,
    "librdkafka": Librdkafka,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
    "java": Java,
}
