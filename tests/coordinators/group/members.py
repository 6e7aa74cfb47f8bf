"""Real members of groups behind one interface: the consumers of librdkafka, kafka-python and aiokafka, on a topic "t".

Use it where the client matters: what a rebalance looks like to it, a client that is killed, clients of two kinds in one
group. It needs a running broker and seconds; rules are tested in milliseconds with `kit`.
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Coroutine
from typing import Any, NamedTuple, Protocol, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, TopicPartition

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the way in which it reads its own files
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.structs import TopicPartition as PythonPartition

T = TypeVar("T")
TOPIC = "t"
SESSION_MS = 6_000


class Seen(NamedTuple):
    partition: int
    offset: int


class Member(Protocol):
    def __init__(
        self, bootstrap: str, group: str, instance: str | None = None, *, cooperative: bool = False
    ) -> None: ...

    def poll(self) -> list[Seen]:
        """What has come within a moment."""

    def held(self) -> set[int]: ...

    def seek(self, partition: int, offset: int) -> None: ...

    def pause(self, partition: int) -> None: ...

    def resume(self, partition: int) -> None: ...

    def close(self) -> None: ...


class Librdkafka:
    def __init__(self, bootstrap: str, group: str, instance: str | None = None, *, cooperative: bool = False) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 100,
            "log_level": 0,
        }
        if instance:
            settings["group.instance.id"] = instance
        if cooperative:
            settings["partition.assignment.strategy"] = "cooperative-sticky"
        self.consumer = Consumer(settings)
        self.consumer.subscribe([TOPIC])

    def poll(self) -> list[Seen]:
        found = [each for each in self.consumer.consume(100, 0.05) if each.error() is None]
        return [Seen(each.partition() or 0, each.offset() or 0) for each in found]

    def held(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(TOPIC, partition, offset))

    def pause(self, partition: int) -> None:
        self.consumer.pause([TopicPartition(TOPIC, partition)])

    def resume(self, partition: int) -> None:
        self.consumer.resume([TopicPartition(TOPIC, partition)])

    def close(self) -> None:
        self.consumer.close()


def subscribe(consumer: Any, topic: str) -> None:
    """The topics are asked for after the subscription and before the first poll, because kafka-python 3.0.12 joins with
    what it learned in between. If that is nothing it assigns nothing and stays so (3 of 30 with Apache Kafka), or joins
    a second time soon after: it has handed out records by then, reads them again, and cannot commit meanwhile."""
    consumer.subscribe([topic])
    assert topic in consumer.topics()


class KafkaPython:
    def __init__(self, bootstrap: str, group: str, instance: str | None = None, *, cooperative: bool = False) -> None:
        settings: dict[str, Any] = {"group_instance_id": instance} if instance else {}
        if cooperative:
            settings["partition_assignment_strategy"] = [CooperativeStickyAssignor]
        self.consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=100,
            **settings,
        )
        subscribe(self.consumer, TOPIC)

    def poll(self) -> list[Seen]:
        return [Seen(each.partition, each.offset) for records in self.consumer.poll(50).values() for each in records]

    def held(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(PythonPartition(TOPIC, partition), offset)

    def pause(self, partition: int) -> None:
        self.consumer.pause(PythonPartition(TOPIC, partition))

    def resume(self, partition: int) -> None:
        self.consumer.resume(PythonPartition(TOPIC, partition))

    def close(self) -> None:
        self.consumer.close()


class AioKafka:
    """On a loop and a thread of its own."""

    def __init__(self, bootstrap: str, group: str, instance: str | None = None, *, cooperative: bool = False) -> None:
        assert not cooperative, "it has no such assignor"
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

        async def start() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                TOPIC,
                bootstrap_servers=bootstrap,
                group_id=group,
                group_instance_id=instance,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=100,
            )
            await consumer.start()
            return consumer

        self.consumer = self._run(start())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(40)

    def poll(self) -> list[Seen]:
        found = self._run(self.consumer.getmany(timeout_ms=50))
        return [Seen(each.partition, each.offset) for records in found.values() for each in records]

    def held(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def seek(self, partition: int, offset: int) -> None:
        async def work() -> None:
            self.consumer.seek(AioPartition(TOPIC, partition), offset)

        self._run(work())

    def pause(self, partition: int) -> None:
        async def work() -> None:
            self.consumer.pause(AioPartition(TOPIC, partition))

        self._run(work())

    def resume(self, partition: int) -> None:
        async def work() -> None:
            self.consumer.resume(AioPartition(TOPIC, partition))

        self._run(work())

    def close(self) -> None:
        self._run(self.consumer.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


MEMBERS: tuple[type[Member], ...] = (Librdkafka, KafkaPython, AioKafka)
