"""Writes delayed records and reads them when they come; notes what was acknowledged, and each that came early.

    python -m devtools.soak.late BOOTSTRAP DIRECTORY TOPIC

A line of its file is `ack VALUE`, or `early VALUE` with the milliseconds. `judged` reads the files of all lives and the
whole topic: what was acknowledged is there, and nothing came early. `doubles` reads the log of the partition: nothing
is delivered twice, and no batch of a producer is accepted twice.

librdkafka 2.16 may send a record twice, as two records of two producer epochs (seen once; why, by reading its source).
It sends a later request to a new leader before it knows how those to the old one ended. The new leader refuses it as
out of order; librdkafka then bumps its epoch and sends all that is not acknowledged again, numbered anew. Some of it
the new leader may have: a leader that loses its role answers NOT_LEADER_OR_FOLLOWER, as Kafka's does, also for records
that its followers have copied. No broker can tell such a record from a new one, so `doubles` only counts it.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from devtools.history.checker import Anomaly
from ixion.language.records.batches import iter_complete_batches

OFFSET_HEADER: Final = "x-schedule-offset"
LONGEST_MS: Final = 5_000
BETWEEN_S: Final = 0.02
READ_S: Final = 120.0


def main(bootstrap: str, directory: str, topic: str) -> None:
    file = Path(directory) / f"late-{os.getpid()}.txt"
    lock = threading.Lock()

    def note(line: str) -> None:
        with lock, file.open("a") as notes:
            notes.write(line + "\n")

    threading.Thread(target=watch, args=(bootstrap, topic, note), daemon=True).start()
    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "socket.timeout.ms": 1_000, "log_level": 0}
    while True:  # a fatal error of an idempotent producer asks for another one
        fatal = threading.Event()

        def delivered(error: KafkaError | None, message: Message, fatal: threading.Event = fatal) -> None:
            if error is None:
                note(f"ack {(message.value() or b'').decode()}")
            elif error.fatal():
                fatal.set()

        producer = Producer(settings)
        for number in count():
            if fatal.is_set():
                break
            delay_ms = random.randrange(LONGEST_MS)
            value = f"{os.getpid()}.{id(producer)}.{number}".encode()
            headers: dict[str, str | bytes | None] = {"x-deliver-after-ms": b"%d" % delay_ms}
            producer.produce(topic, value, headers=headers, partition=0, on_delivery=delivered)
            producer.poll(BETWEEN_S)


def watch(bootstrap: str, topic: str, note: Callable[[str], None]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"late-{os.getpid()}", "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        message = consumer.poll(1)
        if message is None or message.error() is not None:
            continue
        early_ms = due_ms(message) - time.time() * 1_000
        if early_ms > 0:
            note(f"early {(message.value() or b'').decode()} {early_ms:.0f}")


def due_ms(message: Message) -> int:
    found = dict(message.headers() or []).get("x-scheduled-for")
    return 0 if found is None else int(found)


def judged(bootstrap: str, directory: Path, topic: str) -> tuple[int, list[Anomaly]]:
    """How many were acknowledged, and what is wrong. To be called when everything is due."""
    lines = [line.split() for file in directory.glob("late-*.txt") for line in file.read_text().splitlines()]
    acknowledged = {words[1] for words in lines if words[0] == "ack" and len(words) == 2}
    anomalies = [Anomaly("early delayed record", " ".join(words[1:])) for words in lines if words[0] == "early"]
    lost = sorted(acknowledged - set(read_all(bootstrap, topic)))
    if lost:
        anomalies.append(Anomaly("lost delayed record", f"{len(lost)} of {len(acknowledged)}, the first {lost[0]}"))
    return len(acknowledged), anomalies


def doubles(partition: Path) -> tuple[int, list[Anomaly]]:
    """How many records librdkafka has sent under two producer epochs, and those that the brokers have doubled."""
    accepted: dict[int, tuple[int, int]] = {}  # the producer of each offset, and its epoch
    delivered: dict[str, list[int]] = defaultdict(list)  # where a value was accepted, once for each delivery
    for segment in sorted(partition.glob("*.log")):
        for batch in iter_complete_batches(segment.read_bytes()):
            if batch.producer_id >= 0:
                producer = int(batch.producer_id), int(batch.producer_epoch)
                accepted.update(dict.fromkeys(range(batch.base_offset, batch.next_offset), producer))
            for record in batch:
                handle = dict(record.headers).get(OFFSET_HEADER)
                delivered[bytes(record.value or b"").decode()].append(record.offset if handle is None else int(handle))
    twice = {value: offsets for value, offsets in delivered.items() if len(offsets) > 1}
    wrong = {
        value: offsets
        for value, offsets in twice.items()
        if len({accepted.get(offset) for offset in offsets}) < len(offsets)
    }
    anomalies = []
    if wrong:
        value, offsets = next(iter(wrong.items()))
        said = f"{len(wrong)}, the first {value}, accepted at {', '.join(map(str, offsets))}"
        anomalies.append(Anomaly("double delayed record", said))
    return len(twice) - len(wrong), anomalies


def read_all(bootstrap: str, topic: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge", "log_level": 0})
    place = TopicPartition(topic, 0, 0)
    try:
        _, end = consumer.get_watermark_offsets(place, 30)
        consumer.assign([place])
        values: list[str] = []
        deadline = time.monotonic() + READ_S
        while consumer.position([place])[0].offset < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(values)} records of {end} were read")
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                values.append((message.value() or b"").decode())
        return values
    finally:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
