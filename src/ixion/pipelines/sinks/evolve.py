"""Changes a table so that rows with other columns fit: `evolve = true` of a sink.

| | a column or a field of a struct is new | a number is wider | a column has another name |
|---|---|---|---|
| Parquet | no change: each file has its own columns | refused: most readers expect one type | refused |
| Delta | added | widened (`delta.enableTypeWidening`) | renamed (`delta.columnMapping.mode`) |
| Iceberg | added | widened | renamed |

Wider means: an integer of more bytes, DOUBLE for FLOAT, a DECIMAL with more digits and the same scale. Columns that the
rows lack are null. The plan is made from the present table, so after a kill the next run makes the changes that are
still missing. The table properties in brackets are set by Delta for such a change; old readers of Delta do not know
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.nested_fields import ddl
from ixion.pipelines.sinks.change import Change
from ixion.pipelines.sinks.iceberg import iceberg_name
from ixion.pipelines.spec.sinks import TableSink

_WHOLE: Final = ("byte", "short", "integer", "long")  # each fits into the next
_DELTA_NEEDS: Final = {  # kind of change -> the table property that it needs
    "widen": ("delta.enableTypeWidening", "true"),
    "rename": ("delta.columnMapping.mode", "name"),
}


def plan_changes(sink: TableSink, table: T.StructType, rows: T.StructType) -> list[Change]:
    """The changes of TABLE after which ROWS fit. Raises if a rename is impossible; `fit` reports all other misfits."""
    names = {field.name.lower(): field.name for field in table.fields}
    renamed = {}
    for old, new in sink.renames.items():
        if old.lower() in names and new.lower() in names:
            raise PipelineError(f"{sink.label} already has a column {new}, so {old} cannot be renamed to it")
        if old.lower() in names:
            renamed[names[old.lower()]] = new
    fields = [T.StructField(renamed.get(field.name, field.name), field.dataType) for field in table.fields]
    changes = [Change(kind="rename", column=old, to=new) for old, new in renamed.items()]
    return [*changes, *_differences(T.StructType(fields), rows, "", sink.format)]


def apply_changes(sink: TableSink, changes: list[Change], spark: SparkSession) -> None:
    if sink.format == "parquet" or not changes:
        return
    table = f"delta.`{sink.path}`" if sink.format == "delta" else iceberg_name(sink, spark)
    if sink.format == "delta":
        for name, value in sorted({_DELTA_NEEDS[one.kind] for one in changes if one.kind in _DELTA_NEEDS}):
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{name}' = '{value}')")
    for change in changes:
        column = ".".join(f"`{part}`" for part in change.column.split("."))
        words = change.sql or _WORDS[change.kind].format(column=column, to=change.to)
        spark.sql(f"ALTER TABLE {table} {words}")


_WORDS: Final[Mapping[str, str]] = {
    "add": "ADD COLUMNS ({column} {to})",
    "widen": "ALTER COLUMN {column} TYPE {to}",
    "rename": "RENAME COLUMN {column} TO `{to}`",
}


def _differences(table: T.StructType, rows: T.StructType, place: str, kind: str) -> Iterator[Change]:
    there = {field.name.lower(): field for field in table.fields}
    for field in rows.fields:
        known = there.get(field.name.lower())
        if known is None:
            yield Change(kind="add", column=f"{place}{field.name}", to=ddl(field.dataType))
        else:
            yield from _in_type(known.dataType, field.dataType, f"{place}{known.name}", kind)


def _in_type(table: T.DataType, rows: T.DataType, column: str, kind: str) -> Iterator[Change]:
    if isinstance(table, T.StructType) and isinstance(rows, T.StructType):
        yield from _differences(table, rows, f"{column}.", kind)
    elif isinstance(table, T.ArrayType) and isinstance(rows, T.ArrayType):
        yield from _in_type(table.elementType, rows.elementType, f"{column}.element", kind)
    elif isinstance(table, T.MapType) and isinstance(rows, T.MapType):
        yield from _in_type(table.valueType, rows.valueType, f"{column}.value", kind)
    elif kind != "parquet" and is_wider(rows, table):
        yield Change(kind="widen", column=column, to=rows.simpleString(), before=table.simpleString())


def is_wider(wide: T.DataType, narrow: T.DataType) -> bool:
    names = wide.typeName(), narrow.typeName()
    if names[0] in _WHOLE and names[1] in _WHOLE:
        return _WHOLE.index(names[0]) > _WHOLE.index(names[1])
    if isinstance(wide, T.DecimalType) and isinstance(narrow, T.DecimalType):
        return wide.scale == narrow.scale and wide.precision > narrow.precision
    return names == ("double", "float")
