"""Keeps one row for each key, the newest, by MERGE into Delta or Iceberg.

Of the rows of a batch with the same key only the newest counts, by the order column; of two that are equal there, the
later record. It is compared with the row in the table: if that is newer, the change is late and is ignored. So changes
may arrive in any order, and merging a batch again changes nothing:

    table   id 7, at 12:00          batch   id 7, at 11:00     ignored
                                    batch   id 7, at 13:00     replaces the row
                                    batch   id 7, deleted at 13:00
                                            remove   the row is removed; a later change of 12:30 would bring it back
                                            mark     the row stays, with is_deleted = true; a change of 12:30 is late

Ordered by offset, changes of one key cannot be late: they are in one partition, in order. Ordered by any other column
they can be, so there deleted rows are marked, unless the file says otherwise.

Delta notes the batch in the commit of the MERGE. Iceberg's property is set in a second commit: killed between the two,
the batch is merged again, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.batch.steps import need_columns
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.debezium import OP
from ixion.pipelines.formats.nested_fields import has_objects
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.delta import DeltaWriter
from ixion.pipelines.sinks.fill import with_all_fields
from ixion.pipelines.sinks.fit import existing_table
from ixion.pipelines.sinks.history import DELETED, OWN, chain, history_fields, merge_history
from ixion.pipelines.sinks.iceberg import IcebergWriter, refresh
from ixion.pipelines.sinks.reached import Reached
from ixion.pipelines.spec.sinks import TableSink
from ixion.pipelines.spec.upsert import OFFSET, UpsertSpec

TOMBSTONE: Final = "kafka_tombstone"  # marks a delete; not stored
_DELETE: Final = "_delete"
_CHANGES: Final = "ixion_changes"
_PLACE: Final = ("kafka_offset", "kafka_partition", "kafka_topic")


class UpsertWriter:
    is_table = False  # a MERGE computes its rows more than once

    def __init__(self, sink: TableSink, table: DeltaWriter | IcebergWriter, spark: SparkSession) -> None:
        assert sink.upsert is not None
        self.sink: Final = sink
        self._upsert: Final = sink.upsert
        self._table: Final = table
        self._spark: Final = spark

    def has(self, batch: Batch) -> bool:
        return self._table.has(batch)

    def knows(self, pipeline: str) -> bool:
        return self._table.knows(pipeline)

    def reached(self, batch: Batch) -> Reached | None:
        return self._table.reached(batch)

    def last(self, batch: Batch) -> int:
        return self._table.last(batch)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        if self._upsert.history:
            self._write_history(frame, batch)
            return
        frame = self._with_all_fields(frame)
        columns = [field.name for field in stored(frame.schema.fields, self._upsert)]
        changes = newest(frame, self._upsert, self._upsert.keys)
        if isinstance(self._table, DeltaWriter):
            self._table.create(_empty(changes, columns, self._upsert))
            with _noted(frame.sparkSession, self._table, batch):
                _merge(f"delta.`{self.sink.path}`", changes, columns, self._upsert)
        else:
            self._table.create(_empty(changes, columns, self._upsert))
            _merge(self._table.table, changes, columns, self._upsert)
            self._table.note(batch)

    def _write_history(self, frame: DataFrame, batch: Batch) -> None:
        upsert, table = self._upsert, self._table
        frame = self._with_all_fields(frame)
        own = [field.name for field in frame.schema.fields if field.name != TOMBSTONE]
        changes = newest(frame, upsert, (*upsert.keys, upsert.order))
        fields = stored(frame.schema.fields, upsert)
        nothing = frame.where(F.lit(False))
        empty = nothing.select(
            *(f"`{name}`" for name in own),
            *(F.lit(None).cast(one.dataType).alias(one.name) for one in fields if one.name not in own),
        )
        table.create(empty)
        if isinstance(table, DeltaWriter):
            there = self._spark.read.format("delta").load(self.sink.path)
            with _noted(frame.sparkSession, table, batch):
                versions = chain(changes, there, own, upsert, _DELETE)
                merge_history(f"delta.`{self.sink.path}`", versions, own, upsert, _DELETE)
        else:
            refresh(table.table, self._spark)
            versions = chain(changes, self._spark.table(table.table), own, upsert, _DELETE)
            merge_history(table.table, versions, own, upsert, _DELETE)
            table.note(batch)

    def _with_all_fields(self, frame: DataFrame) -> DataFrame:
        """FRAME with the fields that its structs have in the table, if there is one."""
        if not any(has_objects(field.dataType) for field in frame.schema.fields):
            return frame
        return with_all_fields(frame, existing_table(self.sink, self._spark).schema)


def stored(fields: Sequence[T.StructField], upsert: UpsertSpec) -> list[T.StructField]:
    """The columns of a table for rows with FIELDS."""
    kept = [field for field in fields if field.name != TOMBSTONE]
    if upsert.history:
        return [*kept, *history_fields(fields, upsert)]
    return [*kept, T.StructField(DELETED, T.BooleanType())] if upsert.deletes == "mark" else kept


def can_delete(columns: Sequence[str], upsert: UpsertSpec) -> bool:
    """Whether any row with COLUMNS can be a delete."""
    return upsert.delete_when is not None or OP in columns or TOMBSTONE in columns


def is_delete(columns: Sequence[str], upsert: UpsertSpec) -> Column:
    if upsert.delete_when is not None:
        return F.coalesce(F.expr(upsert.delete_when).cast("boolean"), F.lit(False))
    if OP in columns:
        return F.coalesce(F.col(OP) == "d", F.lit(False))
    return F.coalesce(F.col(TOMBSTONE), F.lit(False)) if TOMBSTONE in columns else F.lit(False)


def refuse_unmergeable(sink: TableSink, upsert: UpsertSpec, rows: DataFrame) -> None:
    """Raises if ROWS lack a column that the MERGE needs, before anything is read."""
    need_columns(rows, f"keys of {sink.label}", upsert.keys)
    if upsert.order == OFFSET and OFFSET not in rows.columns:
        message = f"{sink.label} orders changes by {OFFSET}, but the rows have no such column"
        hint = '[source] include = ["offset"] gives it; steps must pass it on; or order = "…" names another column'
        raise PipelineError(message, hint=hint)
    need_columns(rows, f"order of {sink.label}", [upsert.order])
    ours = OWN if upsert.history else (DELETED,) if upsert.deletes == "mark" else ()
    for name in rows.columns:
        if name in ours:
            raise PipelineError(f"the rows for {sink.label} have a column {name}; pipelines reserve this name")
    rows.select(is_delete(rows.columns, upsert))  # Spark reports an unknown column here, not in the first batch


def newest(frame: DataFrame, upsert: UpsertSpec, by: Sequence[str]) -> DataFrame:
    """The newest row for each value of the columns BY, with `_delete`."""
    marked = frame.withColumn(_DELETE, is_delete(frame.columns, upsert))
    places = [F.col(name) for name in _PLACE if name in frame.columns]
    order = F.struct(F.col(f"`{upsert.order}`").alias("order"), *places, F.xxhash64(*_hashable(marked)))
    rows = F.struct(*(F.col(f"`{name}`") for name in marked.columns))
    grouped = marked.groupBy(*(F.col(f"`{key}`").alias(f"_key_{key}") for key in by))
    return grouped.agg(F.max_by(rows, order).alias("_row")).select("_row.*")


def _hashable(frame: DataFrame) -> list[Column]:
    """Columns for a hash that decides between rows equal in the order, always the same way. Maps have no hash."""
    return [F.col(f"`{field.name}`") for field in frame.schema.fields if "map<" not in field.dataType.simpleString()]


def _empty(changes: DataFrame, columns: Sequence[str], upsert: UpsertSpec) -> DataFrame:
    marked = changes.withColumn(DELETED, F.lit(False)) if upsert.deletes == "mark" else changes
    return marked.select(*(f"`{name}`" for name in columns)).where(F.lit(False))


def _merge(table: str, changes: DataFrame, columns: Sequence[str], upsert: UpsertSpec) -> None:
    spark = changes.sparkSession
    changes.createOrReplaceTempView(_CHANGES)
    own = [_quoted(name) for name in columns if name != DELETED]
    same = " AND ".join(f"t.{key} = s.{key}" for key in map(_quoted, upsert.keys))
    order = _quoted(upsert.order)
    newer = f"s.{order} >= t.{order}"
    sets = ", ".join(f"t.{name} = s.{name}" for name in own)
    names, values = ", ".join(own), ", ".join(f"s.{name}" for name in own)
    if upsert.deletes == "mark":
        clauses = (
            f"WHEN MATCHED AND s.{_DELETE} AND {newer} THEN UPDATE SET t.{order} = s.{order}, t.{DELETED} = true",
            f"WHEN MATCHED AND {newer} THEN UPDATE SET {sets}, t.{DELETED} = false",
            f"WHEN NOT MATCHED THEN INSERT ({names}, {DELETED}) VALUES ({values}, s.{_DELETE})",  # noqa: S608 - names, quoted
        )
    else:
        clauses = (
            f"WHEN MATCHED AND s.{_DELETE} AND {newer} THEN DELETE",
            f"WHEN MATCHED AND {newer} THEN UPDATE SET {sets}",
            f"WHEN NOT MATCHED AND NOT s.{_DELETE} THEN INSERT ({names}) VALUES ({values})",  # noqa: S608
        )
    spark.sql(f"MERGE INTO {table} t USING {_CHANGES} s ON {same} {' '.join(clauses)}")
    spark.catalog.dropTempView(_CHANGES)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@contextmanager
def _noted(spark: SparkSession, table: DeltaWriter, batch: Batch) -> Iterator[None]:
    """Delta notes writer and number in its commits meanwhile, and skips those that it has noted before."""
    start = "spark.databricks.delta"
    settings = {f"{start}.write.txnAppId": batch.writer, f"{start}.write.txnVersion": str(table.place(batch))}
    if batch.reached is not None:
        settings[f"{start}.commitInfo.userMetadata"] = batch.reached.to_text()
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)
