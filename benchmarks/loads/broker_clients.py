"""What one librdkafka client sees of a broker: latency, throughput, start. Each is called in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

NOTHING: Mapping[str, str] = {}
WARM = 300  # produces that are not counted


def create_topics(bootstrap: str, topics: dict[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()])
    for future in made.values():
        future.result(30)


def first_ack(bootstrap: str, deadline_s: float = 60) -> float:
    """The moment (time.time) at which a record was first acknowledged, by a client that tries from the beginning."""
    acknowledged: list[float] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is None:
            acknowledged.append(time.time())

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 0,
            "reconnect.backoff.ms": 1,
            "reconnect.backoff.max.ms": 2,
            "retry.backoff.ms": 5,
            "topic.metadata.refresh.fast.interval.ms": 5,
            "log_level": 0,
        }
    )
    producer.produce("first", b"hello", on_delivery=delivered)
    end = time.time() + deadline_s
    while not acknowledged and time.time() < end:
        producer.poll(0.001)
    return acknowledged[0]


def synchronous(bootstrap: str, topic: str, count: int, acks: int) -> tuple[float, float]:
    """One record at a time, each waited for: median and 99th percentile in µs."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": acks})
    taken = []
    done: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        done.append(error)

    value = os.urandom(100)
    for number in range(WARM + count):
        done.clear()
        begun = time.perf_counter()
        producer.produce(topic, value, partition=0, on_delivery=delivered)
        while not done:
            producer.poll(1)
        if number >= WARM:
            taken.append(time.perf_counter() - begun)
        if done[0] is not None:
            raise RuntimeError(str(done[0]))
    taken.sort()
    return taken[len(taken) // 2] * 1e6, taken[len(taken) * 99 // 100] * 1e6


def produce(
    bootstrap: str, topic: str, partitions: int, size: int, count: int, acks: int, more: Mapping[str, str] = NOTHING
) -> float:
    """As fast as it goes, over all partitions in turn: MB/s of values, from the first record to the last ack."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            **more,
        }
    )
    value = os.urandom(size)
    for partition in range(partitions):
        producer.produce(topic, value, partition=partition)
    if producer.flush(30):
        raise RuntimeError("the broker does not answer")
    begun = time.perf_counter()
    for number in range(count):
        producer.produce(topic, value, partition=number % partitions)
        if number % 2000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("records were left behind")
    return count * size / (time.perf_counter() - begun) / 1e6


def consume(bootstrap: str, topic: str, partitions: int, count: int, more: Mapping[str, str] = NOTHING) -> float:
    """All of the topic, from the page cache: MB/s of values, from the first poll on."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 500_000,
            **more,
        }
    )
    begun = time.perf_counter()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    seen = size = 0
    while seen < count:
        messages = consumer.consume(min(10_000, count - seen), timeout=30)  # it waits for that many
        if not messages:
            raise RuntimeError(f"only {seen} of {count} records came")
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
            size += len(message)
        seen += len(messages)
    taken = time.perf_counter() - begun
    consumer.close()
    return size / taken / 1e6
