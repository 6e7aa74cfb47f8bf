"""Exactly once into Delta: the table's own log keeps, for each writer, the number of its last transaction.

A batch that comes again carries a number that is not newer, and Delta leaves it out (`txnAppId`, `txnVersion`). Before
the first batch of a run the log is asked, so that its rows need not be computed for nothing; later batches of a run
cannot be there, because Spark repeats only the last one of the run before.
"""

from __future__ import annotations

import re
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.files import Files
from ixion.pipelines.sinks.base import Batch, writers_of
from ixion.pipelines.spec.sinks import TableSink


class DeltaWriter:
    is_table = True

    def __init__(self, sink: TableSink, spark: SparkSession) -> None:
        self.sink: Final = sink
        self._spark: Final = spark
        self._asked = False

    def has(self, batch: Batch) -> bool:
        if self._asked:
            return False
        self._asked = True
        return self._last_batches().get(batch.writer, -1) >= batch.number

    def knows(self, pipeline: str) -> bool:
        return any(re.match(writers_of(pipeline), writer) for writer in self._last_batches())

    def _last_batches(self) -> dict[str, int]:
        """Writer -> number of its last transaction."""
        if not Files(self._spark).exists(f"{self.sink.path}/_delta_log"):
            return {}
        jvm: Any = self._spark.sparkContext._jvm
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, self.sink.path)
        found = log.unsafeVolatileSnapshot().transactions().iterator()
        batches = {}
        while found.hasNext():
            entry = found.next()
            batches[str(entry._1())] = int(entry._2())
        return batches

    def write(self, frame: DataFrame, batch: Batch) -> None:
        writer = frame.write.format("delta").mode("append").partitionBy(*self.sink.partition_by)
        writer = writer.option("txnAppId", batch.writer).option("txnVersion", batch.number)
        writer.options(**self.sink.options).save(self.sink.path)
