"""What one librdkafka client does with transactions. Each is called in a process of its own."""

from __future__ import annotations

import os
import time

from confluent_kafka import Consumer, Producer, TopicPartition

WARM = 500  # transactions that are not counted: a JVM is four times slower in its first hundreds
WARM_COPIES = 20


def transactions(bootstrap: str, topic: str, count: int, records: int) -> float:
    """One after the other, each of so many records of 100 bytes and committed: transactions per second."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"bench-{records}", "linger.ms": 0})
    producer.init_transactions(30)
    value = os.urandom(100)
    begun = 0.0
    for number in range(WARM + count):
        if number == WARM:
            begun = time.perf_counter()
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(topic, value, partition=0)
        producer.commit_transaction(30)
    return count / (time.perf_counter() - begun)


def fill(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    value = os.urandom(100)
    for _ in range(count):
        producer.produce(topic, value, partition=0)
    producer.flush(60)


def copy(bootstrap: str, source: str, target: str, count: int, at_once: int) -> float:
    """Consume, produce, commit offsets and transaction, so many records at a time: records per second."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "copier",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.subscribe([source])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "copier", "linger.ms": 0})
    producer.init_transactions(30)
    copied = rounds = counted = 0
    begun = 0.0
    while copied < count:
        messages = consumer.consume(at_once, 1)
        if not messages:
            continue
        if rounds == WARM_COPIES:
            begun = time.perf_counter()
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=0)
        end = TopicPartition(source, 0, (messages[-1].offset() or 0) + 1)
        producer.send_offsets_to_transaction([end], consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        copied += len(messages)
        counted += len(messages) if rounds >= WARM_COPIES else 0
        rounds += 1
    taken = time.perf_counter() - begun
    consumer.close()
    return counted / taken
