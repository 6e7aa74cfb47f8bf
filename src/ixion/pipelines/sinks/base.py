"""What every sink can do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch. Spark gives a batch that was not finished the same number and the same offsets again.

    `query` is the id that Spark keeps in the checkpoint: a checkpoint that was thrown away starts with batch 0 again,
    and its batches must not be mistaken for those of the old one.
    """

    pipeline: str
    query: str
    number: int

    @property
    def writer(self) -> str:
        return f"{self.pipeline}-{self.query}"


def writers_of(pipeline: str) -> str:
    """A pattern for the writers of PIPELINE, whichever the checkpoint; those of `shop` are not those of `shop-eu`."""
    return rf"^{re.escape(pipeline)}-[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$"


class Writer(Protocol):
    """One sink of a running pipeline. `is_table`: a write runs through every row, once, under Spark's eyes."""

    is_table: bool

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """All of FRAME, once, however often it is called for the same batch."""

    def has(self, batch: Batch) -> bool:
        """Whether the batch is there already, or could be put there, without its rows being computed."""

    def knows(self, pipeline: str) -> bool:
        """Whether there are batches of PIPELINE, by whichever checkpoint."""
