"""Exactly once into Iceberg: the table itself keeps, for each writer, the number of its last batch.

It is a property of the table (`ixion.batch.<writer>` = `12`), set in the same transaction that adds the files of the
batch. So it lives as long as the table does, also if its snapshots are expired. Spark's own append cannot set a
property in its commit. So Spark writes the files without a commit, as it does when Iceberg rewrites files, and the
commit is made here:

    1  write      Spark writes data files; nothing refers to them yet
    2  commit     one transaction: add the files, set the property

Killed before 2: the files belong to no snapshot, and Iceberg's `remove_orphan_files` clears them away one day. Killed
after 2: the property says so when the batch comes again. Before the first batch of a run the table is asked whether it
is there; later batches of the same run cannot be, because Spark repeats only the last one of the run before.

The summary of each snapshot names writer and batch too, for readers of the metadata. Tables that were written before
there was the property have only the summaries, so these are searched as well.
"""

from __future__ import annotations

import re
import uuid
import zlib
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.java_classes import java_class
from ixion.pipelines.sinks.base import Batch, writers_of
from ixion.pipelines.sinks.shape import partition_column
from ixion.pipelines.spec.sinks import TableSink

WRITER: Final = "ixion-writer"  # in the summary of a snapshot
NUMBER: Final = "ixion-batch"
PROPERTY: Final = "ixion.batch."  # of the table; a writer's name follows
_STAGED: Final = "rewritten-file-scan-task-set-id"  # Iceberg's write option: write the files, leave the commit to us


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
        if self._last_batches().get(batch.writer, -1) >= batch.number:
            return True
        summary = F.col("summary")
        return self._any_snapshot((summary[WRITER] == batch.writer) & (summary[NUMBER].cast("long") >= batch.number))

    def knows(self, pipeline: str) -> bool:
        if any(re.match(writers_of(pipeline), writer) for writer in self._last_batches()):
            return True
        return self._any_snapshot(F.col("summary")[WRITER].rlike(writers_of(pipeline)))

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """All of FRAME, unless an earlier call for the same batch has written it."""
        if self._last_batches().get(batch.writer, -1) >= batch.number:
            return
        self.create(frame.where(F.lit(False)))
        staged = uuid.uuid4().hex
        if self.sink.evolve:
            frame = _with_all(frame, self._spark.table(self.table).schema)
        frame.writeTo(self.table).options(**self.sink.options).option(_STAGED, staged).append()
        self._commit(staged, batch)

    def create(self, empty: DataFrame) -> None:
        """The table with the columns of EMPTY, if there is none."""
        if not self._spark.catalog.tableExists(self.table):
            if self.sink.table:
                place = self.table.rpartition(".")[0]
                self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {place}")
            writer = empty.writeTo(self.table).using("iceberg")
            for key, value in self.sink.properties.items():
                writer = writer.tableProperty(key, value)
            columns = [partition_column(text) for text in self.sink.partition_by]
            (writer.partitionedBy(*columns) if columns else writer).create()
            if self.sink.sort_by:
                self._spark.sql(f"ALTER TABLE {self.table} WRITE ORDERED BY {', '.join(self.sink.sort_by)}")

    def note(self, batch: Batch) -> None:
        """That BATCH is in the table, for rows that came there by another commit."""
        self._load().updateProperties().set(f"{PROPERTY}{batch.writer}", str(batch.number)).commit()
        refresh(self.table, self._spark)

    def _commit(self, staged: str, batch: Batch) -> None:
        table = self._load()
        writes = java_class(self._spark, "org.apache.iceberg.spark.FileRewriteCoordinator").get()
        files = writes.fetchNewFiles(table, staged).iterator()
        transaction = table.newTransaction()
        append = transaction.newAppend().set(WRITER, batch.writer).set(NUMBER, str(batch.number))
        if branch := _branch(self.sink):
            append = append.toBranch(branch)
        while files.hasNext():
            append.appendFile(files.next())
        append.commit()
        transaction.updateProperties().set(f"{PROPERTY}{batch.writer}", str(batch.number)).commit()
        transaction.commitTransaction()
        writes.clearRewrite(table, staged)
        refresh(self.table, self._spark)

    def _last_batches(self) -> dict[str, int]:
        """Writer -> number of its last batch."""
        if not self._spark.catalog.tableExists(self.table):
            return {}
        properties = dict(self._load().properties())
        return {
            str(name).removeprefix(PROPERTY): int(value)
            for name, value in properties.items()
            if str(name).startswith(PROPERTY)
        }

    def _any_snapshot(self, condition: Column) -> bool:
        if not self._spark.catalog.tableExists(self.table):
            return False
        refresh(self.table, self._spark)
        return not self._spark.table(f"{self.table}.snapshots").where(condition).isEmpty()

    def _load(self) -> Any:
        """Iceberg's own object for the table, as it is now."""
        refresh(self.table, self._spark)
        tools = java_class(self._spark, "org.apache.iceberg.spark.Spark3Util")
        table = tools.loadIcebergTable(self._spark._jsparkSession, self.table)
        table.refresh()
        return table


def _branch(sink: TableSink) -> str | None:
    """A sink can name a branch of its table: shop.db.orders.branch_audit."""
    last = sink.table.rpartition(".")[2].strip("`")
    return last.removeprefix("branch_") if last.startswith("branch_") and sink.table.count(".") > 2 else None


def _with_all(frame: DataFrame, table: T.StructType) -> DataFrame:
    """FRAME with all columns of TABLE; null where it has them not."""
    names = {name.lower() for name in frame.columns}
    missing = [field for field in table.fields if field.name.lower() not in names]
    return frame.withColumns({field.name: F.lit(None).cast(field.dataType) for field in missing}) if missing else frame


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
