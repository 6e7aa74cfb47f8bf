"""A producer that waits for every record, acks=all, beside the faults of a cluster: the longest pause that it saw."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer


class Paused:
    """Produces from `__enter__` to `__exit__`; then `longest_s` is the longest time without an acknowledgement."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.longest_s = 0.0
        self.acknowledged = 0
        self._topic = topic
        self._done = threading.Event()
        self._failed: list[KafkaError] = []
        self._thread = threading.Thread(target=self._run)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "linger.ms": 0,
                "enable.idempotence": True,
                "delivery.timeout.ms": 120_000,
                # librdkafka forgets to wake up for a record that still backs off when the connection to its new leader
                # is up, until its next look at all of them, which is up to a second later.
                "retry.backoff.ms": 1,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "topic.metadata.refresh.fast.interval.ms": 20,
                "socket.timeout.ms": 10_000,
                "log_level": 0,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 60
        while self.acknowledged < 50:  # it is at its pace
            if time.monotonic() > deadline or self._failed:
                self._done.set()
                raise RuntimeError(f"nothing is acknowledged: {self._failed}")
            time.sleep(0.01)
        self.longest_s = 0.0
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        if kind is None and self._failed:
            raise RuntimeError(str(self._failed[0]))

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._done.is_set() and not self._failed:
            answered: list[KafkaError | None] = []

            def delivered(error: KafkaError | None, _: Message, answered: list[KafkaError | None] = answered) -> None:
                answered.append(error)

            self._producer.produce(self._topic, b"x" * 100, partition=0, on_delivery=delivered)
            while not answered:
                self._producer.poll(0.1)
            if answered[0] is not None:
                self._failed.append(answered[0])
            now = time.perf_counter()
            self.longest_s = max(self.longest_s, now - last)
            self.acknowledged += 1
            last = now

    def more(self, count: int = 50) -> None:
        """Return when so many more records were acknowledged."""
        wanted = self.acknowledged + count
        while self.acknowledged < wanted:
            if self._failed:
                return
            time.sleep(0.01)
