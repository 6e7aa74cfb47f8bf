"""Exactly once into Iceberg: every snapshot that a pipeline makes carries the writer and the batch in its summary.

The snapshot and its summary are one atomic commit. Before the first batch of a run is written, the summaries are asked
whether it is there; later batches of the same run cannot be, because Spark repeats only the last one of the run before.
"""

from __future__ import annotations

import zlib
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ixion.pipelines.sinks.base import Batch, writers_of
from ixion.pipelines.spec.sinks import TableSink

WRITER: Final = "ixion-writer"
NUMBER: Final = "ixion-batch"


class IcebergWriter:
    is_table = True

    def __init__(self, sink: TableSink, spark: SparkSession) -> None:
        self.sink: Final = sink
        self.table: Final = iceberg_name(sink, spark)
        self._spark: Final = spark
        self._asked = False

    def has(self, batch: Batch) -> bool:
        if self._asked:
            return False
        self._asked = True
        summary = F.col("summary")
        return self._any((summary[WRITER] == batch.writer) & (summary[NUMBER].cast("long") >= batch.number))

    def knows(self, pipeline: str) -> bool:
        return self._any(F.col("summary")[WRITER].rlike(writers_of(pipeline)))

    def _any(self, condition: Column) -> bool:
        """Whether there is such a snapshot."""
        if not self._spark.catalog.tableExists(self.table):
            return False
        refresh(self.table, self._spark)
        return not self._spark.table(f"{self.table}.snapshots").where(condition).isEmpty()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        if not self._spark.catalog.tableExists(self.table):
            empty = frame.where(F.lit(False)).writeTo(self.table).using("iceberg")
            columns = [F.col(name) for name in self.sink.partition_by]
            (empty.partitionedBy(*columns) if columns else empty).create()
        writer = frame.writeTo(self.table).options(**self.sink.options)
        writer.option(f"snapshot-property.{WRITER}", batch.writer).option(
            f"snapshot-property.{NUMBER}", str(batch.number)
        ).append()


def refresh(table: str, spark: SparkSession) -> None:
    """Every session keeps tables for a while as it saw them, and each run of a stream is a session of its own."""
    spark.sql(f"REFRESH TABLE {table}")


def iceberg_name(sink: TableSink, spark: SparkSession) -> str:
    """A path becomes a table of a catalog for its parent folder: lake/orders is `orders` in the catalog of `lake`."""
    if sink.table:
        return ".".join(part if part.startswith("`") else f"`{part}`" for part in sink.table.split("."))
    parent, _, name = sink.path.rstrip("/").rpartition("/")
    catalog = f"ixion_{zlib.crc32(parent.encode()):08x}"
    if spark.conf.get(f"spark.sql.catalog.{catalog}", None) is None:
        spark.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
        spark.conf.set(f"spark.sql.catalog.{catalog}.type", "hadoop")
        spark.conf.set(f"spark.sql.catalog.{catalog}.warehouse", parent)
        spark.conf.set(f"spark.sql.catalog.{catalog}.cache-enabled", "false")
    return f"{catalog}.`{name}`"
