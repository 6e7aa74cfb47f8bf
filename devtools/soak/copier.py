"""Copies a topic exactly once: consumes as a group, writes and commits the offsets in one transaction.

Its history is that of its writes. A copy of value 17 is "copy 17", so a record that is copied twice has a value twice.
One transaction in eight is aborted when all is sent, and the copier goes back to what the group has committed.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from devtools.soak.diary import Diary

ABORTED = 1 / 8


def main(bootstrap: str, directory: str, name: str, source: str, target: str) -> None:
    diary = Diary(Path(directory), name)
    while True:
        try:
            copy(bootstrap, diary, name, source, target)
        except KafkaException:
            continue


def copy(bootstrap: str, diary: Diary, name: str, source: str, target: str) -> None:
    """Copy until something fails; the next copier continues from the offsets that were committed."""
    common = {"bootstrap.servers": bootstrap, "log_level": 0}
    consumer = Consumer(
        common
        | {
            "group.id": "copiers",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 2_000,
            "heartbeat.interval.ms": 300,
        }
    )
    producer = Producer(
        common
        | {
            "transactional.id": name,
            "transaction.timeout.ms": 5_000,
            "message.timeout.ms": 5_000,
            "socket.timeout.ms": 1_000,
        }
    )
    try:
        producer.init_transactions(20)
        consumer.subscribe([source])
        while True:
            messages = [message for message in consumer.consume(20, 0.5) if message.error() is None]
            if messages:
                copy_some(producer, consumer, diary, target, messages)
    finally:
        consumer.close()


def copy_some(producer: Producer, consumer: Consumer, diary: Diary, target: str, messages: list[Message]) -> bool:
    """False if it was aborted and is to be done again."""
    sends = [(message.partition() or 0, f"copy {(message.value() or b'').decode()}") for message in messages]
    attempt = [["send", f"{target}-{number}", value] for number, value in sends]
    placed: dict[str, tuple[int]] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            placed[(message.value() or b"").decode()] = (offset,)

    ends: dict[tuple[str, int], int] = {}
    for message in messages:
        ends[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
    deciding = False
    try:
        producer.begin_transaction()
        for number, value in sends:
            producer.produce(target, value.encode(), partition=number, on_delivery=delivered)
        offsets = [TopicPartition(topic, number, offset) for (topic, number), offset in ends.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 10)
        if random.random() < ABORTED:
            producer.abort_transaction(20)
            go_back(consumer, offsets)
            return False
        deciding = True
        producer.commit_transaction(20)
    except KafkaException:
        if deciding:
            diary.write("txn", "info", attempt)
        # No line for what certainly failed: the next copier copies its values again, under the same names.
        raise
    diary.write(
        "txn",
        "ok",
        [["send", f"{target}-{number}", value, *placed.get(value, ())] for number, value in sends],
    )
    return True


def go_back(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    for found in consumer.committed([TopicPartition(each.topic, each.partition) for each in partitions], 10):
        if found.error is not None:
            raise KafkaException(found.error)
        consumer.seek(TopicPartition(found.topic, found.partition, max(found.offset, 0)))


if __name__ == "__main__":
    main(*sys.argv[1:])
