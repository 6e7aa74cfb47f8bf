"""What the tests of the sink share: batches as Spark's tasks and driver would write them, without Spark; and a process
that is killed while it commits one.

    python -m tests.spark_source.sinking BOOTSTRAP TOPIC NUMBER MOMENT

writes batch NUMBER of `batch_rows` and kills itself at a moment of its transaction: "begin", "after 5" records that
were sent and acknowledged, "commit", "committed".
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from ixion.clients import Producer
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import choose_partitions, ends
from ixion.clients.consumer.ranges import read_ranges
from ixion.spark import commit
from ixion.spark.sink_options import read_sink_options
from ixion.spark.staging import BatchId, write_part

WRITER: Final = "a-query"
Row = tuple[str | None, str]


def batch_rows(number: int) -> list[Row]:
    """Ten rows, in two partitions or more."""
    return [(f"k{row % 3}", f"{number}-{row}") for row in range(10)]


def frame(rows: Sequence[Row]) -> pa.RecordBatch:
    keys, values = zip(*rows, strict=True) if rows else ((), ())
    return pa.record_batch([pa.array(keys, pa.string()), pa.array(values, pa.string())], names=["key", "value"])


def write(bootstrap: str, topic: str, number: int, rows: Sequence[Row], **options: str) -> None:
    """As a query with two tasks does it."""
    found = read_sink_options({"kafka.bootstrap.servers": bootstrap, "topic": topic, **options})
    batch = BatchId(WRITER, number)
    half = len(rows) // 2
    commit.write_batch(found, batch, [write_part(found, batch, [frame(some)]) for some in (rows[:half], rows[half:])])


def committed(bootstrap: str, topic: str) -> list[str]:
    """The values that a reader of committed records sees, sorted."""
    with AdminRunner(bootstrap) as admin:
        places = admin.run(choose_partitions, topic)
        first, end = admin.run(ends, places, read_committed=True)
    ranges = {place: (first[place], end[place]) for place in places}
    found = read_ranges(bootstrap, ranges, read_committed=True)
    values = [columns.values[row] for _, columns in found for row in range(len(columns))]
    return sorted(value.decode() for value in values if value is not None)


def write_and_die(bootstrap: str, topic: str, number: int, moment: str) -> None:
    words = (bootstrap, topic, str(number), moment)
    ended = subprocess.run([sys.executable, "-m", "tests.spark_source.sinking", *words], timeout=120)
    assert ended.returncode == -signal.SIGKILL


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Dying:
    """A producer that dies at a moment of its first transaction."""

    moment = ""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._producer = Producer(*arguments, **settings)
        self._sent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def __enter__(self) -> Dying:
        return self

    def __exit__(self, *error: object) -> None:
        self._producer.close()

    def init_transactions(self, timeout_s: float) -> None:
        self._producer.init_transactions(timeout_s)
        if self.moment == "begin":
            die()

    def send(self, *arguments: Any, **named: Any) -> None:
        self._producer.send(*arguments, **named)
        self._sent += 1
        if self.moment == f"after {self._sent}":
            self._producer.flush()
            die()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._producer.begin_transaction()
        yield
        self._producer.flush()
        if self.moment == "commit":
            die()
        self._producer.commit_transaction()
        if self.moment == "committed":
            die()


if __name__ == "__main__":
    bootstrap, topic, number, Dying.moment = sys.argv[1:]
    commit.Producer = Dying  # type: ignore[assignment,attr-defined]
    write(bootstrap, topic, int(number), batch_rows(int(number)))
