"""Exactly once into Delta: the table's log keeps the number of each writer's last transaction.

A repeated batch has a number that is not newer, and Delta skips it (`txnAppId`, `txnVersion`). Before the first batch
of a run we read the log, so that the rows of a batch that the table already has are not computed. Later batches of a
run cannot be in the table, because Spark repeats only the last batch of the run before.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.files import Files
from ixion.pipelines.java_classes import java_class
from ixion.pipelines.sinks.base import Batch, writers_of
from ixion.pipelines.sinks.evolve import is_wider
from ixion.pipelines.spec.sinks import TableSink


class DeltaWriter:
    is_table = True

    def __init__(self, sink: TableSink, spark: SparkSession) -> None:
        self.sink: Final = sink
        self._spark: Final = spark
        self._asked = False
        self._wider: dict[str, T.DataType] | None = None

    def has(self, batch: Batch) -> bool:
        if self._asked:
            return False
        self._asked = True
        return self._last_batches().get(batch.writer, -1) >= batch.number

    def knows(self, pipeline: str) -> bool:
        return any(re.match(writers_of(pipeline), writer) for writer in self._last_batches())

    def _last_batches(self) -> dict[str, int]:
        """Writer -> number of its last transaction."""
        if not Files(self._spark).has_table_log(self.sink.path):
            return {}
        logs = java_class(self._spark, "org.apache.spark.sql.delta.DeltaLog")
        log = logs.forTable(self._spark._jsparkSession, self.sink.path)
        found = log.unsafeVolatileSnapshot().transactions().iterator()
        batches = {}
        while found.hasNext():
            entry = found.next()
            batches[str(entry._1())] = int(entry._2())
        return batches

    def create(self, empty: DataFrame) -> None:
        """Create the table with the columns of EMPTY, unless it exists."""
        if not Files(self._spark).has_table_log(self.sink.path):
            writer = empty.write.format("delta").mode("append").partitionBy(*self.sink.partition_by)
            writer.options(**self.sink.properties, **self.sink.options).save(self.sink.path)

    def _casts(self, frame: DataFrame) -> dict[str, T.DataType]:
        """Columns of FRAME that are wider in the table. Delta does not widen all of them itself."""
        if self._wider is None:
            self._wider = {}
            if Files(self._spark).has_table_log(self.sink.path):
                table = self._spark.read.format("delta").load(self.sink.path).schema
                there = {field.name.lower(): field.dataType for field in table.fields}
                for field in frame.schema.fields:
                    kind = there.get(field.name.lower(), field.dataType)
                    if is_wider(kind, field.dataType):
                        self._wider[field.name] = kind
        return self._wider

    def write(self, frame: DataFrame, batch: Batch) -> None:
        frame = frame.withColumns({name: F.col(f"`{name}`").cast(kind) for name, kind in self._casts(frame).items()})
        writer = frame.write.format("delta").mode("append").partitionBy(*self.sink.partition_by)
        writer = writer.option("txnAppId", batch.writer).option("txnVersion", batch.number)
        writer.options(**self.sink.properties, **self.sink.options).save(self.sink.path)
