"""What each Python producer does with the same work. Each is called in a process of its own.

A rate is of records handed over one at a time, with acks=all and idempotence, until the last one is acknowledged.
`batch_size` is the client's default unless it is given: 16 KB for Kafka's own producer and ours, 1 MB for librdkafka.
"""

from __future__ import annotations

import asyncio
import os
import time

from benchmarks.loads.client_meter import Meter, Rate

WARM = 300  # produces that are not counted
TOPIC = "load"


def median_us(taken: list[float]) -> float:
    return sorted(taken[WARM:])[len(taken[WARM:]) // 2] * 1e6


def ixion_rate(bootstrap: str, count: int, size: int, batch_size: int = 16_384) -> Rate:
    from ixion.clients import Producer

    value = os.urandom(size)
    with Producer(bootstrap, batch_size=batch_size) as producer:
        producer.send(TOPIC, value).result()

        meter = Meter()
        for _ in range(count):
            producer.send(TOPIC, value)
        producer.flush()
        return meter.rate(count)


def ixion_wait(bootstrap: str, count: int) -> float:
    from ixion.clients import Producer

    value, taken = os.urandom(100), []
    with Producer(bootstrap, linger_ms=0) as producer:
        for _ in range(WARM + count):
            begun = time.perf_counter()
            producer.send(TOPIC, value).result()
            taken.append(time.perf_counter() - begun)
    return median_us(taken)


def ixion_aio_rate(bootstrap: str, count: int, size: int) -> Rate:
    from ixion.clients.aio import Producer

    async def run() -> Rate:
        value = os.urandom(size)
        async with Producer(bootstrap) as producer:
            await (await producer.send(TOPIC, value))
            meter = Meter()
            for _ in range(count):
                await producer.send(TOPIC, value)
            await producer.flush()
            return meter.rate(count)

    return asyncio.run(run())


def ixion_aio_wait(bootstrap: str, count: int) -> float:
    from ixion.clients.aio import Producer

    taken: list[float] = []

    async def run() -> None:
        value = os.urandom(100)
        async with Producer(bootstrap, linger_ms=0) as producer:
            for _ in range(WARM + count):
                begun = time.perf_counter()
                await (await producer.send(TOPIC, value))
                taken.append(time.perf_counter() - begun)

    asyncio.run(run())
    return median_us(taken)


def confluent_rate(bootstrap: str, count: int, size: int, batch_size: int = 1_000_000) -> Rate:
    from confluent_kafka import Producer

    value = os.urandom(size)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.size": batch_size})
    producer.produce(TOPIC, value)
    producer.flush()

    meter = Meter()
    for _ in range(count):
        while True:
            try:
                producer.produce(TOPIC, value)
            except BufferError:
                producer.poll(0.01)
            else:
                break
    producer.flush()
    return meter.rate(count)


def confluent_wait(bootstrap: str, count: int) -> float:
    from confluent_kafka import Producer

    value, taken = os.urandom(100), []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for _ in range(WARM + count):
        begun = time.perf_counter()
        producer.produce(TOPIC, value)
        producer.flush()
        taken.append(time.perf_counter() - begun)
    return median_us(taken)


def aiokafka_rate(bootstrap: str, count: int, size: int) -> Rate:
    from aiokafka import AIOKafkaProducer

    async def run() -> Rate:
        value = os.urandom(size)
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=5)
        await producer.start()
        await producer.send_and_wait(TOPIC, value)
        meter = Meter()
        for _ in range(count):
            await producer.send(TOPIC, value)
        await producer.flush()
        rate = meter.rate(count)
        await producer.stop()
        return rate

    return asyncio.run(run())


def aiokafka_wait(bootstrap: str, count: int) -> float:
    from aiokafka import AIOKafkaProducer

    taken: list[float] = []

    async def run() -> None:
        value = os.urandom(100)
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        for _ in range(WARM + count):
            begun = time.perf_counter()
            await producer.send_and_wait(TOPIC, value)
            taken.append(time.perf_counter() - begun)
        await producer.stop()

    asyncio.run(run())
    return median_us(taken)


def kafka_python_rate(bootstrap: str, count: int, size: int) -> Rate:
    from kafka import KafkaProducer

    value = os.urandom(size)
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5)
    producer.send(TOPIC, value).get(30)

    meter = Meter()
    for _ in range(count):
        producer.send(TOPIC, value)
    producer.flush()
    rate = meter.rate(count)
    producer.close()
    return rate


def kafka_python_wait(bootstrap: str, count: int) -> float:
    from kafka import KafkaProducer

    value, taken = os.urandom(100), []
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=0)
    for _ in range(WARM + count):
        begun = time.perf_counter()
        producer.send(TOPIC, value).get(30)
        taken.append(time.perf_counter() - begun)
    producer.close()
    return median_us(taken)
