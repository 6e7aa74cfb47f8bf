"""Keeps the history of each key: one row for each version (slowly changing dimensions, type 2).

    id  city    valid_from  valid_to  is_current
    7   Bern    09:00       12:00     false
    7   Basel   12:00                 true

Each change is a version. It is valid from its own value in the order column until that of the next version. A batch
reads all versions of its keys from the table, adds its own, chains them again, and merges the rows that differ. So a
change may arrive late: one of 10:30 lands between the two above. Merging a batch again changes nothing.

A delete ends the version before it. Ordered by offset, no change arrives late, so the delete itself is not stored
(`remove`). Ordered by any other column, the delete is stored as a version (`mark`), with `is_deleted = true`: an older
change may arrive after it, and must not become the current one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.spec.upsert import UpsertSpec

FROM: Final = "valid_from"
TO: Final = "valid_to"
CURRENT: Final = "is_current"
DELETED: Final = "is_deleted"
OWN: Final = (FROM, TO, CURRENT, DELETED)
_NEW: Final = "_new"  # whether the version is of this batch
_END: Final = "_end"  # the row is no version; it only marks where one ends
_VIEW: Final = "ixion_versions"


def history_fields(fields: Sequence[T.StructField], upsert: UpsertSpec) -> list[T.StructField]:
    """The table's columns beside those of the rows."""
    order = next(field.dataType for field in fields if field.name == upsert.order)
    own = [T.StructField(FROM, order), T.StructField(TO, order), T.StructField(CURRENT, T.BooleanType())]
    return [*own, T.StructField(DELETED, T.BooleanType())] if upsert.deletes == "mark" else own


def chain(changes: DataFrame, table: DataFrame, columns: Sequence[str], upsert: UpsertSpec, delete: str) -> DataFrame:
    """All versions of the keys of CHANGES, which has one row for each key and value of the order. TABLE has COLUMNS and
    our own; DELETE names the column that marks deletes."""
    keys, order = [_column(key) for key in upsert.keys], _column(upsert.order)
    own = [_column(name) for name in columns]
    new = changes.select(*own, F.col(delete), F.lit(True).alias(_NEW), F.lit(False).alias(_END))
    touched = changes.select(*keys).distinct()
    known = table.join(touched, list(upsert.keys), "left_semi")
    deleted = F.coalesce(F.col(DELETED), F.lit(False)) if upsert.deletes == "mark" else F.lit(False)
    old = known.select(*own, deleted.alias(delete), F.lit(False).alias(_NEW), F.lit(False).alias(_END))
    together = new.unionByName(old)
    if upsert.deletes == "remove":  # deletes are not stored; they show as the ends of versions
        places = [_ended(name, upsert) for name in columns]
        ends = known.where(F.col(TO).isNotNull())
        together = together.unionByName(
            ends.select(*places, F.lit(True).alias(delete), F.lit(False).alias(_NEW), F.lit(True).alias(_END))
        )
    first = Window.partitionBy(*keys, order).orderBy(F.col(_NEW).desc(), F.col(_END))
    one = together.withColumn("_place", F.row_number().over(first)).where("_place = 1").drop("_place")
    following = F.lead(order).over(Window.partitionBy(*keys).orderBy(order))
    valid = one.withColumns({FROM: order, TO: following}).withColumn(CURRENT, F.col(TO).isNull())
    return valid.where(~F.col(_END)).drop(_END)


def merge_history(table: str, versions: DataFrame, columns: Sequence[str], upsert: UpsertSpec, delete: str) -> None:
    spark = versions.sparkSession
    versions.createOrReplaceTempView(_VIEW)
    marks = upsert.deletes == "mark"
    own = [f"`{name}`" for name in (*columns, FROM, TO, CURRENT)]
    same = " AND ".join(f"t.`{name}` = s.`{name}`" for name in (*upsert.keys, FROM))
    sets = ", ".join(f"t.{name} = s.{name}" for name in own) + (f", t.{DELETED} = s.{delete}" if marks else "")
    names, values = ", ".join(own), ", ".join(f"s.{name}" for name in own)
    if marks:
        names, values = f"{names}, {DELETED}", f"{values}, s.{delete}"
    clauses = [
        *([] if marks else [f"WHEN MATCHED AND s.{delete} THEN DELETE"]),
        f"WHEN MATCHED AND s.{_NEW} THEN UPDATE SET {sets}",
        f"WHEN MATCHED AND NOT (t.{TO} <=> s.{TO}) THEN UPDATE SET t.{TO} = s.{TO}, t.{CURRENT} = s.{CURRENT}",
        f"WHEN NOT MATCHED{'' if marks else f' AND NOT s.{delete}'} THEN INSERT ({names}) VALUES ({values})",  # noqa: S608 - names, quoted
    ]
    spark.sql(f"MERGE INTO {table} t USING {_VIEW} s ON {same} {' '.join(clauses)}")
    spark.catalog.dropTempView(_VIEW)


def _ended(name: str, upsert: UpsertSpec) -> Column:
    """Column NAME of the row that marks the end of a version."""
    if name == upsert.order:
        return F.col(TO).alias(name)
    return _column(name)


def _column(name: str) -> Column:
    return F.col(f"`{name}`")
