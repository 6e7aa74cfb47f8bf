"""What one librdkafka client does with transactions. Each is called in a process of its own."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, Message, Producer, TopicPartition

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


def transactions_at_once(bootstrap: str, topic: str, count: int, producers: int) -> float:
    """Transactions of one record by so many producers, each on a thread of its own: transactions per second."""

    def transact(producer: Producer, many: int) -> None:
        for _ in range(many):
            producer.begin_transaction()
            producer.produce(topic, value, partition=0)
            producer.commit_transaction(30)

    value = os.urandom(100)
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 0}
    everybody = [Producer(settings | {"transactional.id": f"many-{number}"}) for number in range(producers)]
    for producer in everybody:
        producer.init_transactions(30)
    with ThreadPoolExecutor(producers) as pool:
        list(pool.map(transact, everybody, [WARM // producers] * producers))
        begun = time.perf_counter()
        list(pool.map(transact, everybody, [count // producers] * producers))
        return count // producers * producers / (time.perf_counter() - begun)


def copy(bootstrap: str, source: str, target: str, count: int, at_once: int, pause_ms: int | None) -> float:
    """Consume, produce, commit offsets and transaction, COUNT times AT_ONCE records: records per second."""
    name = f"copier-{at_once}-{pause_ms}"
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        # With as many as it wants in its queue librdkafka does not fetch for a second: at 100,000, its own choice, no
        # copy is faster than that many a second, whatever the broker does.
        "queued.min.messages": 1_000_000,
    }
    consumer = Consumer(settings)
    consumer.subscribe([source])
    pause = {} if pause_ms is None else {"retry.backoff.ms": pause_ms}
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, **pause})
    producer.init_transactions(30)
    counted = 0
    begun = 0.0
    for number in range(count):
        if number == WARM_COPIES:
            begun = time.perf_counter()
        messages: list[Message] = []
        while len(messages) < at_once:
            messages += consumer.consume(at_once - len(messages), 1)
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=0)
        end = TopicPartition(source, 0, (messages[-1].offset() or 0) + 1)
        producer.send_offsets_to_transaction([end], consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        counted += len(messages) if number >= WARM_COPIES else 0
    taken = time.perf_counter() - begun
    consumer.close()
    return counted / taken
