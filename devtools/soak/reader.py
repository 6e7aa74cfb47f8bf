"""Reads all partitions at read_committed, from the beginning: what it sees goes into its history.

With `--to-the-end` it stops where the topic ends; else it goes on until it is killed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from devtools.soak.diary import Diary


def main(bootstrap: str, directory: str, name: str, topic: str, partitions: str, *options: str) -> None:
    diary = Diary(Path(directory), name)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": name,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    wanted = range(int(partitions))
    consumer.assign([TopicPartition(topic, number, 0) for number in wanted])
    diary.write("assign", "ok", [])
    at_the_end: set[int] = set()
    while not ("--to-the-end" in options and len(at_the_end) == len(wanted)):
        seen: dict[str, list[tuple[int, str]]] = {}
        for message in consumer.consume(100, 0.5):
            number = message.partition()
            if message.error() is not None:
                if "_PARTITION_EOF" in repr(message.error()) and number is not None:
                    at_the_end.add(number)
                continue
            offset = message.offset()
            if offset is not None:
                seen.setdefault(f"{topic}-{number}", []).append((offset, (message.value() or b"").decode()))
        if seen:
            diary.write("poll", "ok", [["poll", key, records] for key, records in seen.items()])
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
