"""Counts the instructions of the interpreter that a broker spends on delays for a topic in mode `off`.

    python -m tests.delay.off_cost        prints: on delayed delivery, in all

A client sends records one by one, which is where a small cost shows most, and reads them. A line belongs to delayed
delivery if it has one of `WORDS`; the lines that they lead to are not run in mode `off`.
"""

from __future__ import annotations

import linecache
import sys
import threading
from collections import Counter
from types import FrameType
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.testing import Broker

WORDS = ("schedule", "samples", "covers", "delivery_delay", "delays", "visible_end", "barrier", "sibling")
ROUNDS = 100
FIRST = 110  # the first hundred batches of a partition are looked through for headers, once


class Instructions:
    """Of the threads that start from now on, while `on`."""

    def __init__(self) -> None:
        self.lines: Counter[tuple[str, int]] = Counter()
        self.on = False
        threading.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not self.on:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.lines[frame.f_code.co_filename, frame.f_lineno or 0] += 1
        return self._trace

    def counted(self) -> tuple[int, int]:
        ours = {place: found for place, found in self.lines.items() if "/ixion/" in place[0]}
        marked = [found for place, found in ours.items() if any(word in linecache.getline(*place) for word in WORDS)]
        return sum(marked), sum(ours.values())


def main() -> None:
    instructions = Instructions()
    with Broker() as broker:
        broker.create_topic("plain")
        threading.settrace(None)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})

        def send(count: int) -> None:
            for _ in range(count):
                producer.produce("plain", b"x" * 100, partition=0)
                if producer.flush(60):
                    sys.exit("not acknowledged")

        send(FIRST)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False})
        consumer.assign([TopicPartition("plain", 0, FIRST)])
        instructions.on = True
        send(ROUNDS)
        if len(consumer.consume(ROUNDS, 60)) != ROUNDS:
            sys.exit("not read")
        instructions.on = False
        consumer.close()
    print(*instructions.counted())


if __name__ == "__main__":
    main()
