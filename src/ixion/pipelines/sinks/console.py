"""Shows rows on the terminal."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.spec.sinks import ConsoleSink


class ConsoleWriter:
    is_table = False

    def __init__(self, sink: ConsoleSink) -> None:
        self.sink: Final = sink

    def has(self, batch: Batch) -> bool:  # noqa: ARG002 - a repeated batch is shown again
        return False

    def knows(self, pipeline: str) -> bool:  # noqa: ARG002 - a terminal stores nothing
        return False

    def write(self, frame: DataFrame, batch: Batch) -> None:
        print(f"batch {batch.number}")
        frame.show(self.sink.rows, truncate=False)
