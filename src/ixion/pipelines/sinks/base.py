"""The interface of all sinks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch. If a batch was not finished, Spark repeats it with the same number and the same offsets.

    `query` is the id that Spark keeps in the checkpoint. A new checkpoint starts with batch 0 again, and its batches
    must not be mistaken for those of the old one.
    """

    pipeline: str
    query: str
    number: int

    @property
    def writer(self) -> str:
        return f"{self.pipeline}-{self.query}"


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
