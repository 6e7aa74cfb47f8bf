"""Writes delayed records and reads them when they come; notes what was acknowledged, and each that came early.

    python -m devtools.soak.late BOOTSTRAP DIRECTORY TOPIC

A line of its file is `ack VALUE`, or `early VALUE` with the milliseconds. `judged` reads the files of all lives and the
whole topic: what was acknowledged is there, and nothing is there twice.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from devtools.history.checker import Anomaly

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
    found = Counter(read_all(bootstrap, topic))
    lost = sorted(acknowledged - found.keys())
    if lost:
        anomalies.append(Anomaly("lost delayed record", f"{len(lost)} of {len(acknowledged)}, the first {lost[0]}"))
    twice = [value for value, times in found.items() if times > 1]
    if twice:
        anomalies.append(Anomaly("double delayed record", f"{len(twice)}, the first {twice[0]}"))
    return len(acknowledged), anomalies


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
