"""Three Python clients behind one interface: librdkafka, kafka-python, aiokafka.

Use it to run the same steps with each of them. For members of groups, see `tests/coordinators/group/members.py`.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentPartition

with warnings.catch_warnings():  # kafka-python reads its tables in a way that Python 3.11 does not like
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as KafkaPartition

T = TypeVar("T")
P = ParamSpec("P")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BIG = 8 << 20  # what clients allow for one message and one fetch


class Message(NamedTuple):
    """What a client writes, and what another one must read."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 1_700_000_000_000


class Driver(Protocol):
    name: str

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: list[Message],
        *,
        acks: int = -1,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        """Writes to partition 0; the offsets that the broker gave (with acks=0 they mean nothing)."""

    def read(self, bootstrap: str, topic: str, offset: int, count: int, committed: bool = False) -> list[Message]:
        """`count` messages of partition 0 from an offset on, by assignment and seek."""

    def ends(self, bootstrap: str, topic: str) -> tuple[int, int]:
        """First offset and end of partition 0."""

    def at_time(self, bootstrap: str, topic: str, timestamp: int) -> int | None:
        """The offset of the first message at or after a time."""


class Confluent:
    name = "confluent-kafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: list[Message],
        *,
        acks: int = -1,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "compression.type": codec,
            "message.max.bytes": BIG,
            "linger.ms": 5,
        }
        if idempotent:
            settings["enable.idempotence"] = True
        producer = Producer(settings)
        offsets: list[int] = []
        errors: list[object] = []

        def told(error: object, message: Any) -> None:
            if error is not None:
                errors.append(error)
            offsets.append(message.offset())

        for each in messages:
            producer.produce(
                topic,
                each.value,
                each.key,
                partition=0,
                headers=list(each.headers),
                timestamp=each.timestamp,
                on_delivery=told,
            )
        assert producer.flush(20) == 0
        if errors:
            raise RuntimeError(str(errors[0]))
        return offsets

    def read(self, bootstrap: str, topic: str, offset: int, count: int, committed: bool = False) -> list[Message]:
        consumer = self._consumer(bootstrap, committed)
        consumer.assign([ConfluentPartition(topic, 0, offset)])
        found: list[Message] = []
        while len(found) < count:
            got = consumer.poll(20)
            assert got is not None, f"only {len(found)} of {count}"
            assert got.error() is None, got.error()
            headers: tuple[Any, ...] = tuple(got.headers() or ())
            found.append(Message(got.key(), got.value(), headers, got.timestamp()[1]))
        consumer.close()
        return found

    def ends(self, bootstrap: str, topic: str) -> tuple[int, int]:
        consumer = self._consumer(bootstrap)
        low, high = consumer.get_watermark_offsets(ConfluentPartition(topic, 0), timeout=20)
        consumer.close()
        return low, high

    def at_time(self, bootstrap: str, topic: str, timestamp: int) -> int | None:
        consumer = self._consumer(bootstrap)
        (found,) = consumer.offsets_for_times([ConfluentPartition(topic, 0, timestamp)], timeout=20)
        consumer.close()
        return None if found.offset < 0 else int(found.offset)

    def _consumer(self, bootstrap: str, committed: bool = False) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "fetch.message.max.bytes": BIG,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
            }
        )


def tidied(use: Callable[P, T]) -> Callable[P, T]:
    """kafka-python leaves sockets to the garbage collector; better here than in a test that knows nothing of them."""

    @wraps(use)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return use(*args, **kwargs)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()

    return run


class KafkaPython:
    name = "kafka-python"

    @tidied
    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: list[Message],
        *,
        acks: int = -1,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all" if acks < 0 else acks,
            compression_type=None if codec == "none" else codec,
            max_request_size=BIG,
            enable_idempotence=idempotent,
            linger_ms=5,
        )
        futures = [
            producer.send(topic, each.value, each.key, list(each.headers), 0, each.timestamp) for each in messages
        ]
        offsets = [future.get(20).offset for future in futures]
        producer.close()
        return offsets

    @tidied
    def read(self, bootstrap: str, topic: str, offset: int, count: int, committed: bool = False) -> list[Message]:
        consumer = self._consumer(bootstrap, committed)
        place = KafkaPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, offset)
        found: list[Message] = []
        try:
            while len(found) < count:
                polled = consumer.poll(20_000, max_records=count)
                assert polled, f"only {len(found)} of {count}"
                found += [
                    Message(got.key, got.value, tuple(got.headers), got.timestamp) for got in polled.get(place, ())
                ]
        finally:
            consumer.close()
        return found[:count]

    @tidied
    def ends(self, bootstrap: str, topic: str) -> tuple[int, int]:
        consumer = self._consumer(bootstrap)
        place = KafkaPartition(topic, 0)
        found = consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]
        consumer.close()
        return found

    @tidied
    def at_time(self, bootstrap: str, topic: str, timestamp: int) -> int | None:
        consumer = self._consumer(bootstrap)
        place = KafkaPartition(topic, 0)
        found = consumer.offsets_for_times({place: timestamp})[place]
        consumer.close()
        return None if found is None else found.offset

    def _consumer(self, bootstrap: str, committed: bool = False) -> Any:
        return KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            max_partition_fetch_bytes=BIG,
            isolation_level="read_committed" if committed else "read_uncommitted",
        )


class AioKafka:
    name = "aiokafka"

    def produce(
        self,
        bootstrap: str,
        topic: str,
        messages: list[Message],
        *,
        acks: int = -1,
        codec: str = "none",
        idempotent: bool = False,
    ) -> list[int]:
        async def work() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                acks="all" if acks < 0 else acks,
                compression_type=None if codec == "none" else codec,
                max_request_size=BIG,
                enable_idempotence=idempotent,
                linger_ms=5,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic,
                        each.value,
                        each.key,
                        partition=0,
                        headers=list(each.headers),
                        timestamp_ms=each.timestamp,
                    )
                    for each in messages
                ]
                told = [await future for future in futures]
                return [-1 if each is None else each.offset for each in told]
            finally:
                await producer.stop()

        return asyncio.run(asyncio.wait_for(work(), 60))

    def read(self, bootstrap: str, topic: str, offset: int, count: int, committed: bool = False) -> list[Message]:
        async def work(consumer: AIOKafkaConsumer) -> list[Message]:
            place = AioPartition(topic, 0)
            consumer.assign([place])
            consumer.seek(place, offset)
            found: list[Message] = []
            while len(found) < count:
                got = await consumer.getone()
                found.append(Message(got.key, got.value, tuple(got.headers), got.timestamp))
            return found

        return self._consume(bootstrap, work, committed)

    def ends(self, bootstrap: str, topic: str) -> tuple[int, int]:
        async def work(consumer: AIOKafkaConsumer) -> tuple[int, int]:
            place = AioPartition(topic, 0)
            low, high = await consumer.beginning_offsets([place]), await consumer.end_offsets([place])
            return low[place], high[place]

        return self._consume(bootstrap, work)

    def at_time(self, bootstrap: str, topic: str, timestamp: int) -> int | None:
        async def work(consumer: AIOKafkaConsumer) -> int | None:
            place = AioPartition(topic, 0)
            found = (await consumer.offsets_for_times({place: timestamp}))[place]
            return None if found is None else int(found.offset)

        return self._consume(bootstrap, work)

    def _consume(self, bootstrap: str, work: Callable[[AIOKafkaConsumer], Awaitable[T]], committed: bool = False) -> T:
        async def run() -> T:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                enable_auto_commit=False,
                max_partition_fetch_bytes=BIG,
                isolation_level="read_committed" if committed else "read_uncommitted",
            )
            await consumer.start()
            try:
                return await work(consumer)
            finally:
                await consumer.stop()

        return asyncio.run(asyncio.wait_for(run(), 60))


DRIVERS: tuple[Driver, ...] = (Confluent(), KafkaPython(), AioKafka())
