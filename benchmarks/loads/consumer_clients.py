"""What each Python consumer does with the same topic. Each is called in a process of its own.

Every client reads all partitions from their beginning, without a group, and looks at offset and value of each record.
The clock starts with the first record, so that connecting does not count. confluent-kafka may hold as much as it likes:
with its own limits it pauses for a second whenever its queue is full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from benchmarks.loads.client_meter import Meter, Rate

if TYPE_CHECKING:
    import confluent_kafka

    from ixion.clients import Consumer
    from ixion.clients.consumer.batch import ColumnBatch

PARTITIONS = 3
PIECE = 10_000  # messages that confluent-kafka hands over at once
PATIENCE_S = 30.0


def topic_of(size: int) -> str:
    return f"read-{size}"


def ixion_reader(bootstrap: str, size: int) -> Consumer:
    from ixion.clients import Consumer, TopicPartition

    consumer = Consumer(bootstrap)
    places = [TopicPartition(topic_of(size), number) for number in range(PARTITIONS)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    return consumer


def one_by_one(records: Iterable[Any], count: int) -> Rate:
    left = iter(records)
    next(left)
    meter = Meter()
    for record in islice(left, count - 1):
        record.offset, record.value  # noqa: B018
    return meter.rate(count - 1)


async def one_by_one_async(consumer: Any, count: int) -> Rate:
    records = aiter(consumer)
    await anext(records)
    meter = Meter()
    left = count - 1
    async for record in records:
        record.offset, record.value  # noqa: B018
        left -= 1
        if not left:
            break
    return meter.rate(count - 1)


def ixion_one(bootstrap: str, count: int, size: int) -> Rate:
    with ixion_reader(bootstrap, size) as consumer:
        return one_by_one(consumer, count)


def ixion_batches(bootstrap: str, count: int, size: int) -> Rate:
    return ixion_columns(bootstrap, count, size, lambda batch: len(batch.columns))


def ixion_arrow(bootstrap: str, count: int, size: int) -> Rate:
    return ixion_columns(bootstrap, count, size, lambda batch: batch.to_arrow().num_rows)


def ixion_columns(bootstrap: str, count: int, size: int, take: Callable[[ColumnBatch], int]) -> Rate:
    with ixion_reader(bootstrap, size) as consumer:
        batches = consumer.batches(PATIENCE_S)
        first = seen = take(next(batches))
        meter = Meter()
        while seen < count:
            seen += take(next(batches))
        return meter.rate(seen - first)


def ixion_aio_one(bootstrap: str, count: int, size: int) -> Rate:
    from ixion.clients import TopicPartition
    from ixion.clients.aio import Consumer

    async def run() -> Rate:
        async with Consumer(bootstrap) as consumer:
            places = [TopicPartition(topic_of(size), number) for number in range(PARTITIONS)]
            await consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            return await one_by_one_async(consumer, count)

    return asyncio.run(run())


def confluent_reader(bootstrap: str, size: int) -> confluent_kafka.Consumer:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 500_000,
        }
    )
    consumer.assign([TopicPartition(topic_of(size), number, 0) for number in range(PARTITIONS)])
    return consumer


def confluent_one(bootstrap: str, count: int, size: int) -> Rate:
    consumer = confluent_reader(bootstrap, size)
    if consumer.poll(PATIENCE_S) is None:
        raise RuntimeError("no record came")
    meter = Meter()
    for _ in range(count - 1):
        message = consumer.poll(PATIENCE_S)
        if message is None or message.error():
            raise RuntimeError(f"no record: {message and message.error()}")
        message.offset(), message.value()
    rate = meter.rate(count - 1)
    consumer.close()
    return rate


def confluent_batches(bootstrap: str, count: int, size: int) -> Rate:
    return confluent_columns(bootstrap, count, size, arrow=False)


def confluent_arrow(bootstrap: str, count: int, size: int) -> Rate:
    return confluent_columns(bootstrap, count, size, arrow=True)


def confluent_columns(bootstrap: str, count: int, size: int, *, arrow: bool) -> Rate:
    """It has no columns: what they need is collected of its messages, a list at a time."""
    import pyarrow as pa

    from ixion.clients.consumer.arrow import arrow_schema

    consumer = confluent_reader(bootstrap, size)
    schema = arrow_schema(headers=False)
    seen = len(consumer.consume(1, PATIENCE_S))
    meter = Meter()
    while seen < count:
        messages = consumer.consume(min(PIECE, count - seen), PATIENCE_S)
        if not messages:
            raise RuntimeError(f"only {seen} of {count} records came")
        keys = [message.key() for message in messages]
        values = [message.value() for message in messages]
        offsets = [message.offset() for message in messages]
        partitions = [message.partition() for message in messages]
        times = [message.timestamp() for message in messages]
        seen += len(messages)
        if arrow:
            columns = [
                *(keys, values, [topic_of(size)] * len(keys), partitions, offsets),
                *([time_ms for _, time_ms in times], [kind for kind, _ in times]),
            ]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            pa.RecordBatch.from_arrays(arrays, schema=schema)
    rate = meter.rate(count - 1)
    consumer.close()
    return rate


def aiokafka_one(bootstrap: str, count: int, size: int) -> Rate:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> Rate:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        await consumer.start()
        places = [TopicPartition(topic_of(size), number) for number in range(PARTITIONS)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        rate = await one_by_one_async(consumer, count)
        await consumer.stop()
        return rate

    return asyncio.run(run())


def kafka_python_one(bootstrap: str, count: int, size: int) -> Rate:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    places = [TopicPartition(topic_of(size), number) for number in range(PARTITIONS)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    rate = one_by_one(consumer, count)
    consumer.close()
    return rate
