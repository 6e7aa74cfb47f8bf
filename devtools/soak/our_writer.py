"""`writer` with our own producer. After a failure it aborts and goes on, or a new producer takes over: as it happens.

With `--asyncio` the producer is that of `ixion.clients.aio`, on a loop of its own.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

from devtools.soak.diary import Diary
from ixion.clients import Producer, aio
from ixion.clients.faults import FencedError
from ixion.language.model.errors import KafkaError

SETTINGS: Final[dict[str, Any]] = {
    "transaction_timeout_ms": 5_000,
    "delivery_timeout_ms": 5_000,
    "request_timeout_ms": 1_000,
    "max_block_ms": 20_000,
}
GOES_ON = 1 / 2  # of the producers that failed
ENDS_WELL = 4 / 5


class Attempt:
    """One transaction: what is sent, and what the history says of it."""

    def __init__(self, diary: Diary, topic: str, partitions: int, numbers: Iterator[int]) -> None:
        self.sends = [
            (random.randrange(partitions), f"{diary.process}.{next(numbers)}") for _ in range(random.randint(1, 4))
        ]
        self.ends_well = random.random() < ENDS_WELL
        self.is_deciding = False
        self._diary = diary
        self._topic = topic
        self._write("invoke", {})

    def over(self, offsets: dict[str, int]) -> None:
        self._write("ok" if self.ends_well else "fail", offsets if self.ends_well else {})

    def failed(self) -> None:
        """Nothing was said of a commit: it did not happen, and never will. Otherwise its outcome is unknown."""
        self._write("info" if self.is_deciding else "fail", {})

    def _write(self, outcome: str, offsets: dict[str, int]) -> None:
        parts: list[list[object]] = []
        for number, value in self.sends:
            placed = [offsets[value]] if value in offsets else []
            parts.append(["send", f"{self._topic}-{number}", value, *placed])
        self._diary.write("txn", outcome, parts)


def main(bootstrap: str, directory: str, name: str, topic: str, partitions: str, *options: str) -> None:
    diary, numbers = Diary(Path(directory), name), count()
    while True:
        try:
            if "--asyncio" in options:
                asyncio.run(write_on_asyncio(bootstrap, name, diary, topic, int(partitions), numbers))
            else:
                write(bootstrap, name, diary, topic, int(partitions), numbers)
        except KafkaError:
            continue


def write(
    bootstrap: str, name: str, diary: Diary, topic: str, partitions: int, numbers: Iterator[int], times: int = 10**9
) -> None:
    """KafkaError if the producer cannot go on, or is not to."""
    producer = Producer(bootstrap, transactional_id=name, **SETTINGS)
    try:
        producer.init_transactions()
        for _ in range(times):
            attempt = Attempt(diary, topic, partitions, numbers)
            try:
                producer.begin_transaction()
                futures = [
                    (value, producer.send(topic, value.encode(), partition=number)) for number, value in attempt.sends
                ]
                producer.flush()
                if attempt.ends_well:
                    attempt.is_deciding = True
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
                attempt.over({value: future.result(0).offset for value, future in futures})
            except KafkaError as fault:
                attempt.failed()
                if isinstance(fault, FencedError) or attempt.is_deciding or random.random() > GOES_ON:
                    raise
                producer.abort_transaction()
    finally:
        close(producer)


def close(producer: Producer) -> None:
    try:
        producer.close(0.1)
    except KafkaError:
        pass  # records that were not settled; the history knows


async def write_on_asyncio(
    bootstrap: str, name: str, diary: Diary, topic: str, partitions: int, numbers: Iterator[int], times: int = 10**9
) -> None:
    producer = aio.Producer(bootstrap, transactional_id=name, **SETTINGS)
    try:
        await producer.init_transactions()
        for _ in range(times):
            attempt = Attempt(diary, topic, partitions, numbers)
            try:
                await producer.begin_transaction()
                futures = [
                    (value, await producer.send(topic, value.encode(), partition=number))
                    for number, value in attempt.sends
                ]
                await producer.flush()
                if attempt.ends_well:
                    attempt.is_deciding = True
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
                attempt.over({value: (await future).offset for value, future in futures})
            except KafkaError as fault:
                attempt.failed()
                if isinstance(fault, FencedError) or attempt.is_deciding or random.random() > GOES_ON:
                    raise
                await producer.abort_transaction()
    finally:
        try:
            await producer.close(0.1)
        except KafkaError:
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
