"""Reads a whole topic by a real consumer (librdkafka).

Use it to see what a consumer sees in the end, with read_committed or without.
"""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition


def read_all(bootstrap: str, topic: str, *, committed: bool = True) -> list[bytes]:
    """All of a topic's committed records, by a client that took no part."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen: list[bytes] = []
    while True:
        message = consumer.poll(10)
        assert message is not None, "neither a record nor the end"
        if message.error() is not None:
            assert "_PARTITION_EOF" in repr(message.error())
            consumer.close()
            return seen
        seen.append(message.value() or b"")
