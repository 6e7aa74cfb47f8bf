"""Exactly once into Iceberg: the table keeps the number of each writer's last batch.

The number is a table property (`ixion.batch.<writer>` = `12`), set in the same transaction that adds the files of the
batch. It lives as long as the table, even if its snapshots expire. Spark's own append cannot set a property in its
commit. So Spark writes the files without a commit, as it does when Iceberg rewrites files, and we commit them:

    1  write      Spark writes data files; nothing refers to them yet
    2  commit     one transaction: add the files, set the property

Killed before 2: the files belong to no snapshot; Iceberg's `remove_orphan_files` removes them. Killed after 2: the
property shows that the table has the batch when Spark repeats it. We look for the batch only before the first one of a
run. Later batches cannot be in the table, because Spark repeats only the last batch of the run before.

The summary of each snapshot names writer and batch too, for readers of the metadata. Tables of older versions of ixion
have only the summaries, so these are searched as well.

Properties survive a rollback of the table, rows do not. So the summary also tells what the table has then (see
`reached`); it is looked for from the present snapshot back. If the snapshots have expired, the property of that name
tells it.
"""

from __future__ import annotations

import re
import uuid
import zlib
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ixion.pipelines.sinks.base import Batch, writers_of
from ixion.pipelines.sinks.fill import with_all_columns
from ixion.pipelines.sinks.reached import KEY, Reached, nothing, reached_of
from ixion.pipelines.sinks.reached import PROPERTY as REACHED
from ixion.pipelines.sinks.shape import partition_column
from ixion.pipelines.spark.java_classes import java_class
from ixion.pipelines.spec.sinks import TableSink

WRITER: Final = "ixion-writer"  # in the summary of a snapshot
NUMBER: Final = "ixion-batch"
PROPERTY: Final = "ixion.batch."  # of the table; a writer's name follows
_STAGED: Final = "rewritten-file-scan-task-set-id"  # Iceberg's write option: write the files, do not commit them


class IcebergWriter:
    is_table = True

    def __init__(self, sink: TableSink, spark: SparkSession) -> None:
        self.sink: Final = sink
        self.table: Final = iceberg_name(sink, spark)
        self._spark: Final = spark
        self._asked = False
        self._last: int | None = None  # number of the last batch in the table

    def has(self, batch: Batch) -> bool:
        if self._asked:
            return False
        self._asked = True
        self._last = self.last(batch)
        there = self.reached(batch)
        if batch.is_done(there, self._last):
            return True
        if batch.reached is not None and there is not None:
            return False
        summary = F.col("summary")
        return self._any_snapshot((summary[WRITER] == batch.writer) & (summary[NUMBER].cast("long") >= batch.number))

    def knows(self, pipeline: str) -> bool:
        if any(re.match(writers_of(pipeline), writer) for writer in self._last_batches()):
            return True
        return self._any_snapshot(F.col("summary")[WRITER].rlike(writers_of(pipeline)))

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write all rows of FRAME, unless the table already has the batch."""
        if batch.reached is None and self.last(batch) >= batch.number:
            return
        self.create(frame.where(F.lit(False)))
        staged = uuid.uuid4().hex
        frame = with_all_columns(frame, self._spark.table(self.table).schema)
        frame.writeTo(self.table).options(**self.sink.options).option(_STAGED, staged).append()
        self._commit(staged, batch)

    def create(self, empty: DataFrame) -> None:
        """Create the table with the columns of EMPTY, unless it exists."""
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
        """Note that the table has BATCH, whose rows another commit has added: a MERGE takes no summary. So a snapshot
        without files tells what the table has then."""
        number = self._place(batch)
        transaction = self._load().newTransaction()
        if batch.reached is not None:
            self._summarised(transaction.newAppend(), batch, number).commit()
        self._noted(transaction.updateProperties(), batch, number).commit()
        transaction.commitTransaction()
        self._last = number
        refresh(self.table, self._spark)

    def last(self, batch: Batch) -> int:
        return self._last_batches().get(batch.writer, -1)

    def reached(self, batch: Batch) -> Reached | None:
        return self._told(self._load(), batch.writer) if self._spark.catalog.tableExists(self.table) else None

    def _told(self, table: Any, writer: str) -> Reached | None:
        """What the newest snapshot of WRITER tells; the property, if snapshots have expired. If none has, the table was
        rolled back to before all of them."""
        branch, noted = _branch(self.sink), reached_of(table.properties().get(f"{REACHED}{writer}"), writer)
        snapshot = table.snapshot(branch) if branch else table.currentSnapshot()
        while snapshot is not None:
            if (found := reached_of(snapshot.summary().get(KEY), writer)) is not None:
                return found
            parent = snapshot.parentId()
            if parent is None:
                return nothing(writer) if noted else None
            snapshot = table.snapshot(parent)
        return noted

    def _place(self, batch: Batch) -> int:
        if self._last is None:
            self._last = self.last(batch)
        return batch.place(self._last)

    def _summarised(self, update: Any, batch: Batch, number: int) -> Any:
        update = update.set(WRITER, batch.writer).set(NUMBER, str(number))
        if batch.reached is not None:
            update = update.set(KEY, batch.reached.to_text())
        branch = _branch(self.sink)
        return update.toBranch(branch) if branch else update

    def _noted(self, update: Any, batch: Batch, number: int) -> Any:
        update = update.set(f"{PROPERTY}{batch.writer}", str(number))
        return update.set(f"{REACHED}{batch.writer}", batch.reached.to_text()) if batch.reached else update

    def _commit(self, staged: str, batch: Batch) -> None:
        table = self._load()
        writes = java_class(self._spark, "org.apache.iceberg.spark.FileRewriteCoordinator").get()
        files = writes.fetchNewFiles(table, staged).iterator()
        transaction = table.newTransaction()
        number = self._place(batch)
        append = self._summarised(transaction.newAppend(), batch, number)
        while files.hasNext():
            append.appendFile(files.next())
        append.commit()
        self._noted(transaction.updateProperties(), batch, number).commit()
        transaction.commitTransaction()
        self._last = number
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
        """Iceberg's own object for the present table."""
        refresh(self.table, self._spark)
        tools = java_class(self._spark, "org.apache.iceberg.spark.Spark3Util")
        table = tools.loadIcebergTable(self._spark._jsparkSession, self.table)
        table.refresh()
        return table


def _branch(sink: TableSink) -> str | None:
    """The branch that a sink's table names: audit of shop.db.orders.branch_audit."""
    last = sink.table.rpartition(".")[2].strip("`")
    return last.removeprefix("branch_") if last.startswith("branch_") and sink.table.count(".") > 2 else None


def refresh(table: str, spark: SparkSession) -> None:
    """Drop the session's cached view of TABLE; the stream writes in another session."""
    spark.sql(f"REFRESH TABLE {table}")


def iceberg_name(sink: TableSink, spark: SparkSession) -> str:
    """The name in SQL. A path gets a catalog for its parent folder: lake/orders is `orders` in the one of `lake`."""
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
