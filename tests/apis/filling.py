"""Fills topics by a real producer (librdkafka).

Use it where a test needs records and does not care how they were written.
"""

from __future__ import annotations

from confluent_kafka import Producer


def fill(bootstrap: str, topic: str, partition: int = 0, count: int = 10, key: bytes | None = None) -> None:
    """So many batches of one record each."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, b"value %d" % number, key=key, partition=partition)
        assert producer.flush(20) == 0
