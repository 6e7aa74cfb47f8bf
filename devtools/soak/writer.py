"""Writes transactions of one to four records; every fifth is aborted. After a failure a new producer takes over."""

from __future__ import annotations

import random
import sys
from itertools import count
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from devtools.soak.diary import Diary


def main(bootstrap: str, directory: str, name: str, topic: str, partitions: str) -> None:
    diary = Diary(Path(directory), name)
    numbers = count()
    while True:
        settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 5_000,
            "message.timeout.ms": 5_000,
            "socket.timeout.ms": 1_000,
            "log_level": 0,
        }
        producer = Producer(settings)
        try:
            producer.init_transactions(20)
            while True:
                transact(producer, diary, topic, int(partitions), numbers)
        except KafkaException:
            continue


def transact(producer: Producer, diary: Diary, topic: str, partitions: int, numbers: Any) -> None:
    """KafkaException if the producer cannot go on."""
    sends = [(random.randrange(partitions), f"{diary.process}.{next(numbers)}") for _ in range(random.randint(1, 4))]
    diary.write("txn", "invoke", [["send", f"{topic}-{number}", value] for number, value in sends])
    placed: dict[str, tuple[int]] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            placed[(message.value() or b"").decode()] = (offset,)

    ends_well = random.random() < 0.8
    deciding = False
    try:
        producer.begin_transaction()
        for number, value in sends:
            producer.produce(topic, value.encode(), partition=number, on_delivery=delivered)
        producer.flush(10)
        if ends_well:
            deciding = True
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    except KafkaException:
        # Nothing was said of a commit: it did not happen, and never will. Otherwise its outcome is unknown.
        diary.write("txn", "info" if deciding else "fail", [["send", f"{topic}-{n}", value] for n, value in sends])
        raise
    parts = [["send", f"{topic}-{number}", value, *placed.get(value, ())] for number, value in sends]
    if ends_well:
        diary.write("txn", "ok", parts)
    else:
        diary.write("txn", "fail", [["send", f"{topic}-{number}", value] for number, value in sends])


if __name__ == "__main__":
    main(*sys.argv[1:])
