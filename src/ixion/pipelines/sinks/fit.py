"""Checks that rows fit an existing table, before anything is written.

A folder holds one kind of table: Delta has its `_delta_log`, Iceberg its `metadata`, plain Parquet only files. Spark
would write two kinds into one folder, and readers would mix them up.

| | a column is new | a column is missing | a column has another type | other partitions |
|---|---|---|---|---|
| Parquet | fine | fine | refused: most readers expect one type | refused |
| Delta | refused without mergeSchema | null | a wider number in the table is fine, else refused | refused |
| Iceberg | refused without merge-schema | refused | a wider number in the table, or text, is fine | ignored |

With `evolve = true` the table is changed before the first batch (see `evolve`), and missing columns are null. They
are null with `drift.new = "add"`, too: fields that were added under an earlier checkpoint are missing under a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.added_columns import RECORD_TYPES
from ixion.pipelines.sinks.evolve import apply_changes, is_wider, plan_changes
from ixion.pipelines.sinks.iceberg import iceberg_name
from ixion.pipelines.spark.hadoop_files import Files, one_path
from ixion.pipelines.spec.sinks import TableSink

_WHOLE: Final = ("byte", "short", "integer", "long")  # each fits into the next
_DIGITS: Final = {"byte": 3, "short": 5, "integer": 10, "long": 19}  # of the largest number


@dataclass(frozen=True, slots=True, kw_only=True)
class Existing:
    """A table as it is now."""

    schema: T.StructType = field(default_factory=T.StructType)
    partition_by: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, T.DataType]:
        """By their names in lower case."""
        return {field.name.lower(): field.dataType for field in self.schema.fields}


def refuse_unfit(
    sink: TableSink, rows: Iterable[T.StructField] | None, spark: SparkSession, *, grows: bool = False
) -> None:
    """Raises if ROWS, the columns that will be written, do not fit. None: do not compare columns (those of a quarantine
    never change).

    If the table GROWS, columns that it does not have yet are fine, and so are columns that only the table has.
    """
    files = Files(spark)
    if sink.table:
        _need_catalog(sink.table, spark)
    else:
        _refuse_other_kind(sink, files)
    if rows is None:
        return
    existing = existing_table(sink, spark)
    if not existing.columns:
        return
    hint = _WAYS_OUT[sink.format]
    mine = {field.name.lower(): field for field in rows}
    if sink.format != "iceberg" and sink.partition_by and sink.partition_by != existing.partition_by:
        both = f"{_listed(existing.partition_by)}, and partition_by says {_listed(sink.partition_by)}"
        raise PipelineError(
            f"{sink.label} is partitioned by {both}", hint="give the sink another path, or the old partitions"
        )
    for name, row in mine.items():
        there = existing.columns.get(name)
        if there is None:
            if sink.format != "parquet" and not _merges(sink) and not grows and not sink.evolve:
                raise PipelineError(f"{sink.label} has no column {row.name}, which the rows have", hint=hint)
        elif name not in existing.partition_by and not _fits(row.dataType, there, sink, grows=grows):
            types = f"{there.simpleString()} in the table and {row.dataType.simpleString()} in the rows"
            raise PipelineError(f"column {row.name} of {sink.label} is {types}", hint=hint)
    if sink.format == "iceberg" and not sink.evolve and not grows:
        for name in existing.columns:
            if name not in mine:
                raise PipelineError(f"{sink.label} has a column {name}, which the rows do not have", hint=hint)


def refuse_other_quarantine(sink: TableSink, spark: SparkSession) -> None:
    """Raises if the table of the quarantine SINK is another table, which would be found with the first bad record."""
    refuse_unfit(sink, None, spark)
    there = existing_table(sink, spark).columns
    missing = [name for name in (*RECORD_TYPES, "reason") if name.lower() not in there]
    if there and missing:
        message = f"{sink.label} is not a quarantine table: it has no column {missing[0]}"
        raise PipelineError(message, hint="give [quarantine] another path")


def add_columns(sink: TableSink, rows: Iterable[T.StructField], spark: SparkSession) -> None:
    """Add the columns that the table lacks, also inside structs. Parquet needs no change: each file has its columns."""
    existing = existing_table(sink, spark)
    if existing.columns:
        changes = plan_changes(replace(sink, renames={}), existing.schema, T.StructType([*rows]))
        apply_changes(sink, [change for change in changes if change.kind == "add"], spark)


_WAYS_OUT: Final = {
    "parquet": "a SQL step can cast the rows to the types of the table; or write to another path",
    "delta": "a SQL step can cast or leave out columns; evolve = true adds new ones and widens numbers",
    "iceberg": "a SQL step can cast, add or leave out columns; evolve = true adds new ones and widens numbers",
}


def _refuse_other_kind(sink: TableSink, files: Files) -> None:
    if files.is_file(sink.path):
        raise PipelineError(f"{sink.path} is a file; a table is a folder", hint="give the sink another path")
    names = set(files.names(sink.path))
    kind = "delta" if "_delta_log" in names else "iceberg" if "metadata" in names else "parquet"
    if kind != sink.format and (kind != "parquet" or _first_file(sink.path, files) is not None):
        hint = f'write type = "{kind}", or give the sink another path'
        raise PipelineError(f"{sink.path} is a {kind} table, and the sink is {sink.format}", hint=hint)


def _need_catalog(table: str, spark: SparkSession) -> None:
    catalog, _, rest = table.partition(".")
    if not rest or (catalog != "spark_catalog" and spark.conf.get(f"spark.sql.catalog.{catalog}", None) is None):
        settings = (
            f'"spark.sql.catalog.{catalog}" = "org.apache.iceberg.spark.SparkCatalog", its type and its warehouse'
        )
        raise PipelineError(f"table {table}: there is no catalog {catalog}", hint=f"[spark.conf] names it: {settings}")


def existing_table(sink: TableSink, spark: SparkSession) -> Existing:
    """The present table; without columns if there is none."""
    files = Files(spark)
    if sink.format == "parquet":
        file = _first_file(sink.path, files)
        if file is None:
            return Existing()
        parts = [part.partition("=")[0] for part in file.removeprefix(sink.path).split("/") if "=" in part]
        return Existing(schema=spark.read.parquet(one_path(file)).schema, partition_by=tuple(parts))
    if sink.format == "delta":
        if not files.has_table_log(sink.path):
            return Existing()
        detail = spark.sql(f"DESCRIBE DETAIL delta.`{sink.path}`").collect()[0]
        table = spark.read.format("delta").load(sink.path)
        return Existing(schema=table.schema, partition_by=tuple(detail["partitionColumns"]))
    name = iceberg_name(sink, spark)
    return Existing(schema=spark.table(name).schema) if spark.catalog.tableExists(name) else Existing()


def is_there(sink: TableSink, spark: SparkSession) -> bool:
    """Whether the table exists; no data file is opened."""
    if sink.format == "iceberg":
        return spark.catalog.tableExists(iceberg_name(sink, spark))
    files = Files(spark)
    return files.has_table_log(sink.path) if sink.format == "delta" else files.exists(sink.path)


def _first_file(path: str, files: Files) -> str | None:
    """The first Parquet file in the folder or its partitions. Only one is looked at, since there may be many."""
    for name in files.names(path):
        if name.endswith(".parquet"):
            return f"{path}/{name}"
        if "=" in name and not name.startswith(("_", ".")):
            found = _first_file(f"{path}/{name}", files)
            if found is not None:
                return found
    return None


def _fits(rows: T.DataType, table: T.DataType, sink: TableSink, *, grows: bool) -> bool:
    """Whether a column of type ROWS fits the type in the table, now or after the table is changed."""
    if _goes_into(rows, table, sink.format) or (grows and _has_more(rows, table)):
        return True
    if not sink.evolve or sink.format == "parquet":
        return False
    if isinstance(rows, T.StructType) and isinstance(table, T.StructType):
        there = {field.name.lower(): field.dataType for field in table.fields}
        known = [field for field in rows.fields if field.name.lower() in there]
        return all(_fits(field.dataType, there[field.name.lower()], sink, grows=grows) for field in known)
    if isinstance(rows, T.ArrayType) and isinstance(table, T.ArrayType):
        return _fits(rows.elementType, table.elementType, sink, grows=grows)
    if isinstance(rows, T.MapType) and isinstance(table, T.MapType) and rows.keyType == table.keyType:
        return _fits(rows.valueType, table.valueType, sink, grows=grows)
    return is_wider(rows, table)


def _has_more(rows: T.DataType, table: T.DataType) -> bool:
    """Whether the two differ only by struct fields that one of them lacks."""
    if isinstance(rows, T.StructType) and isinstance(table, T.StructType):
        there = {field.name.lower(): field.dataType for field in table.fields}
        return all(_has_more(field.dataType, there.get(field.name.lower(), field.dataType)) for field in rows.fields)
    if isinstance(rows, T.ArrayType) and isinstance(table, T.ArrayType):
        return _has_more(rows.elementType, table.elementType)
    return rows.simpleString() == table.simpleString()


def _goes_into(rows: T.DataType, table: T.DataType, kind: str) -> bool:
    if rows.simpleString() == table.simpleString():
        return True
    if kind == "iceberg":
        return (isinstance(table, T.StringType) and isinstance(rows, T.AtomicType)) or _takes_all(table, rows)
    names = rows.typeName(), table.typeName()
    if kind == "delta" and names[0] in _WHOLE and names[1] in _WHOLE:
        return _WHOLE.index(names[0]) <= _WHOLE.index(names[1])
    # Delta itself checks the types inside structs and arrays.
    return kind == "delta" and names[0] == names[1] and not isinstance(rows, T.AtomicType)


def _takes_all(table: T.DataType, rows: T.DataType) -> bool:
    """Whether every number of type ROWS can be stored as type TABLE. Iceberg would cut off what does not fit: 1.9
    becomes 1, and a whole number that is too large ends the batch."""
    if isinstance(table, T.DecimalType) and (isinstance(rows, T.DecimalType) or rows.typeName() in _DIGITS):
        scale = rows.scale if isinstance(rows, T.DecimalType) else 0
        before = (rows.precision - scale) if isinstance(rows, T.DecimalType) else _DIGITS[rows.typeName()]
        return scale <= table.scale and before <= table.precision - table.scale
    exact = {"float": ("byte", "short"), "double": ("byte", "short", "integer")}.get(table.typeName(), ())
    return is_wider(table, rows) or rows.typeName() in exact


def _merges(sink: TableSink) -> bool:
    return "true" in (
        sink.options.get("mergeSchema"),
        sink.options.get("merge-schema"),
    )  # as Delta and Iceberg spell it


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
