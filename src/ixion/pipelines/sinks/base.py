"""The interface of all sinks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from ixion.pipelines.sinks.reached import Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch. If a batch was not finished, Spark repeats it with the same number and the same offsets.

    `query` is the id that Spark keeps in the checkpoint. A new checkpoint starts with batch 0 again, and its batches
    must not be mistaken for those of the old one.
    """

    pipeline: str
    query: str
    number: int
    reached: Reached | None = None  # what a table has after this batch; None for a batch outside the stream
    no_records: bool = False  # it ends where the batch before has ended: Spark only moves the watermark

    @property
    def writer(self) -> str:
        return f"{self.pipeline}-{self.query}"

    def is_done(self, there: Reached | None, last: int) -> bool:
        """Whether a table that has reached THERE, with LAST as the number of its last batch, has this batch."""
        if self.reached is None or there is None:  # a table of an earlier version, or a batch outside the stream
            return last >= self.number
        return there.offsets == self.reached.offsets and (not self.no_records or there.batch == self.number)

    def place(self, last: int) -> int:
        """The number under which a table with LAST stores this batch. It is Spark's, unless the table has had that:
        then the checkpoint was set back, or `backfill --missing` has added batches."""
        return self.number if self.reached is None else max(self.number, last + 1)


def writers_of(pipeline: str) -> str:
    """A pattern for the writers of PIPELINE with any checkpoint. It tells `shop` from `shop-eu`."""
    return rf"^{re.escape(pipeline)}-[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$"


class Writer(Protocol):
    """One sink of a running pipeline. `is_table`: a write is one Spark job that computes every row once."""

    is_table: bool

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write all rows of FRAME. Another call for the same batch adds nothing."""

    def has(self, batch: Batch) -> bool:
        """Whether the batch is in the sink, perhaps after moving its staged files there; its rows are not computed."""

    def knows(self, pipeline: str) -> bool:
        """Whether the sink has batches of PIPELINE, written with any checkpoint."""


class Table(Writer, Protocol):
    """A sink that can tell what it has."""

    def reached(self, batch: Batch) -> Reached | None:
        """What the table has of the writer of BATCH; None if it does not tell: nothing, or batches of an earlier
        version."""

    def last(self, batch: Batch) -> int:
        """The number of the last batch of the same writer in the table; -1 if there is none."""
