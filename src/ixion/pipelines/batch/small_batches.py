"""Small batches are interpreted: Spark generates no code for them.

For every plan Spark generates Java code, compiles it and runs it. That pays for many rows. For a thousand it takes
longer than to evaluate the same expressions one by one, most of all in the first batch of a run, when Spark's compiler
itself has just been loaded.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

FEW: Final = 20_000  # records; interpreted, they take about as long as generating the code for them
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


class SmallBatches:
    """The settings of the session of a query, changed by the size of each batch."""

    def __init__(self) -> None:
        self._before: dict[str, str] | None = None  # what the user or Spark has set; None: not changed now

    def prepare(self, spark: SparkSession, records: int) -> None:
        """Called in a batch of this many RECORDS, before its plan is made."""
        if records < FEW and self._before is None:
            self._before = {name: str(spark.conf.get(name)) for name in _INTERPRETED}
            _set(spark, _INTERPRETED)
        elif records >= FEW and self._before is not None:
            _set(spark, self._before)
            self._before = None


def _set(spark: SparkSession, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)
