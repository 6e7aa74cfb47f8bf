"""Rows with all fields that their table has: those that the rows lack are null, also inside structs.

Delta does this when rows are added. Iceberg, and MERGE into both, refuse rows whose structs lack a field.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T


def with_all_fields(frame: DataFrame, table: T.StructType) -> DataFrame:
    """FRAME with the fields of TABLE inside its structs. Columns that FRAME lacks are not added."""
    there = {field.name.lower(): field.dataType for field in table.fields}
    changed = {
        field.name: _filled(F.col(f"`{field.name.replace('`', '``')}`"), field.dataType, kind)
        for field in frame.schema.fields
        if (kind := there.get(field.name.lower())) is not None and _lacks(field.dataType, kind)
    }
    return frame.withColumns(changed) if changed else frame


def with_all_columns(frame: DataFrame, table: T.StructType) -> DataFrame:
    """FRAME with all columns and fields of TABLE."""
    names = {name.lower() for name in frame.columns}
    missing = [field for field in table.fields if field.name.lower() not in names]
    frame = with_all_fields(frame, table)
    return frame.withColumns({field.name: F.lit(None).cast(field.dataType) for field in missing}) if missing else frame


def _lacks(rows: T.DataType, table: T.DataType) -> bool:
    """Whether a struct in ROWS lacks a field that it has in TABLE."""
    if isinstance(rows, T.StructType) and isinstance(table, T.StructType):
        mine = {field.name.lower(): field.dataType for field in rows.fields}
        return any(
            field.name.lower() not in mine or _lacks(mine[field.name.lower()], field.dataType) for field in table.fields
        )
    if isinstance(rows, T.ArrayType) and isinstance(table, T.ArrayType):
        return _lacks(rows.elementType, table.elementType)
    if isinstance(rows, T.MapType) and isinstance(table, T.MapType):
        return _lacks(rows.valueType, table.valueType)
    return False


def _filled(column: Column, rows: T.DataType, table: T.DataType) -> Column:
    if not _lacks(rows, table):
        return column
    if isinstance(rows, T.ArrayType) and isinstance(table, T.ArrayType):
        inner, wanted = rows.elementType, table.elementType
        return F.transform(column, lambda item: _filled(item, inner, wanted))
    if isinstance(rows, T.MapType) and isinstance(table, T.MapType):
        inner, wanted = rows.valueType, table.valueType
        return F.transform_values(column, lambda _, item: _filled(item, inner, wanted))
    assert isinstance(rows, T.StructType)
    assert isinstance(table, T.StructType)
    mine = {field.name.lower(): field for field in rows.fields}
    parts = [
        _filled(column[own.name], own.dataType, field.dataType).alias(field.name)
        if (own := mine.get(field.name.lower())) is not None
        else F.lit(None).cast(field.dataType).alias(field.name)
        for field in table.fields
    ]
    known = {field.name.lower() for field in table.fields}
    parts += [column[field.name] for field in rows.fields if field.name.lower() not in known]
    return F.when(column.isNotNull(), F.struct(*parts))
