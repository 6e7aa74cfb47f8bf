"""The loads behind `ixion perf`."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping

from ixion.cli.perf.stats import Measured
from ixion.cli.progress import ProgressLine
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.metadata import TopicPartition
from ixion.clients.producer import Producer
from ixion.clients.reader import Reader

VALUES = 256  # different ones, in turn; fewer if they are large
VALUES_BYTES = 32 << 20
LETTERS = bytes(ord("A") + byte % 26 for byte in range(256))
POLL_S = 0.5


class Sent:
    """Counts the delivery of one record."""

    __slots__ = ("_at_s", "_load", "_size")

    def __init__(self, load: Measured, size: int, at_s: float) -> None:
        self._load = load
        self._size = size
        self._at_s = at_s

    def __call__(self, delivery: Delivery) -> None:
        if delivery.error is None:
            self._load.records += 1
            self._load.value_bytes += self._size
            self._load.latencies.add(time.perf_counter() - self._at_s)


def produce_load(producer: Producer, topic: str, records: int, size: int, rate: float | None) -> Measured:
    """Send records, at `rate` per second or as fast as possible, and wait for all. Raises a failure."""
    load = Measured("produced", "acknowledgement")
    values = random_values(min(records, VALUES, VALUES_BYTES // max(size, 1) + 1), size)
    start_s = time.perf_counter()

    def text() -> str:
        load.seconds = time.perf_counter() - start_s
        return load.progress(records)

    line = ProgressLine(text)
    try:
        for number in range(records):
            now_s = time.perf_counter()
            if rate is not None:
                while (wait_s := start_s + number / rate - now_s) > 0:
                    producer.poll(min(wait_s, 0.001))
                    now_s = time.perf_counter()
            producer.send(topic, values[number % len(values)], on_delivery=Sent(load, size, now_s))
            if number % 64 == 0:
                line.step()
        producer.flush()
    finally:
        line.clear()
    load.seconds = time.perf_counter() - start_s
    return load


def random_values(count: int, size: int) -> list[bytes]:
    choose = random.Random(17)
    return [choose.randbytes(size).translate(LETTERS) for _ in range(count)]


def consume_load(reader: Reader, records: int | None, ends: Mapping[TopicPartition, int] | None) -> Measured:
    """Read this many records, or up to the ends."""
    load = Measured("consumed", "fetch")
    start_s = time.perf_counter()

    def text() -> str:
        load.seconds = time.perf_counter() - start_s
        return load.progress(records)

    line = ProgressLine(text)
    try:
        while not is_done(load, reader, records, ends):
            asked_s = time.perf_counter()
            found = reader.poll(POLL_S)
            if found:
                load.latencies.add(time.perf_counter() - asked_s)
            for fetched in found:
                for record in fetched.records():
                    load.records += 1
                    load.value_bytes += max(record.key_size, 0) + max(record.value_size, 0)
            line.step()
    finally:
        line.clear()
    load.seconds = time.perf_counter() - start_s
    return load


def is_done(load: Measured, reader: Reader, records: int | None, ends: Mapping[TopicPartition, int] | None) -> bool:
    if records is not None and load.records >= records:
        return True
    return ends is not None and all(reader.offsets[place] >= end for place, end in ends.items())
