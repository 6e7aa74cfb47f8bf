"""The layout of a table: partitions, sort order and properties; and the changes that it needs.

Iceberg applies new partitions and a new order to rows written from then on (`ALTER TABLE … ADD PARTITION FIELD`);
existing files keep theirs until they are rewritten. Delta cannot change its partitions, but its properties.

    partition_by = ["days(at)", "bucket(16, customer)", "country"]      a transform of Iceberg's, or a column
    sort_by = ["customer", "at DESC"]                                   when files are joined
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from ixion.pipelines.sinks.change import Change
from ixion.pipelines.spec.shape import column_of, parts_of
from ixion.pipelines.spec.sinks import TableSink

ORDER: Final = "sort-order"  # among Iceberg's properties


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The layout of an existing table."""

    partitions: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


def partition_column(text: str) -> Column:
    """The partition TEXT, for a new table."""
    name, number, column = parts_of(text)
    if not name:
        return F.col(column)
    transform = getattr(F.partitioning, name)
    made: Column = transform(int(number), F.col(column)) if number else transform(F.col(column))
    return made


def shape_of(name: str, kind: str, spark: SparkSession) -> Shape:
    """The layout of the table with this NAME in SQL."""
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    if kind != "iceberg":
        return Shape(properties=properties)
    rows = spark.sql(f"DESCRIBE TABLE {name}").collect()
    partitions = tuple(partitions_in([(row["col_name"], row["data_type"]) for row in rows]))
    order = tuple(part.strip() for part in properties.get(ORDER, "").split(",") if part.strip())
    return Shape(partitions=partitions, order=order, properties=properties)


def partitions_in(described: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The partitions in the output of DESCRIBE TABLE. Spark lists them as columns if all are plain columns."""
    inside = False
    for name, kind in described:
        if name.startswith("#"):
            inside = name == "# Partition Information" or (inside and name == "# col_name")
        elif inside and name:
            yield name
        elif re.fullmatch(r"Part \d+", name):
            yield kind
        else:
            inside = inside and bool(name)


def plan_shape(sink: TableSink, there: Shape) -> Iterator[Change]:
    """The changes that give the table THERE the layout of SINK. Settings that SINK does not have stay as they are."""
    if sink.format == "iceberg" and sink.partition_by:
        wanted = {_normal(text): text for text in sink.partition_by}
        known = {_normal(text): text for text in there.partitions}
        for key, text in known.items():
            if key not in wanted:
                yield Change(
                    kind="partition",
                    column=text,
                    to="",
                    sql=f"DROP PARTITION FIELD {text}",
                    said=f"no longer partition by {text}",
                )
        for key, text in wanted.items():
            if key not in known:
                yield Change(
                    kind="partition", column=text, to="", sql=f"ADD PARTITION FIELD {text}", said=f"partition by {text}"
                )
    if sink.sort_by and [_ordered(text) for text in sink.sort_by] != [_ordered(text) for text in there.order]:
        order = ", ".join(sink.sort_by)
        yield Change(kind="order", column=order, to="", sql=f"WRITE ORDERED BY {order}", said=f"order by {order}")
    for name, value in sink.properties.items():
        if there.properties.get(name) != value:
            pair = f"'{text_of(name)}' = '{text_of(value)}'"
            yield Change(
                kind="property", column=name, to=value, sql=f"SET TBLPROPERTIES ({pair})", said=f"set {name} to {value}"
            )


def text_of(value: str) -> str:
    """VALUE escaped for a string literal in SQL."""
    return value.replace("\\", "\\\\").replace("'", "\\'")


def columns(partition_by: Sequence[str]) -> list[str]:
    return [column_of(text) for text in partition_by]


def _normal(text: str) -> tuple[str, str, str]:
    name, number, column = parts_of(text)
    return name, number, column.lower()


def _ordered(text: str) -> str:
    """In Iceberg's spelling: `at` becomes `at ASC NULLS FIRST`."""
    words = text.replace("`", "").split()
    direction = words[1].upper() if len(words) > 1 and words[1].upper() in ("ASC", "DESC") else "ASC"
    nulls = "NULLS FIRST" if direction == "ASC" else "NULLS LAST"
    found = re.search(r"nulls\s+(first|last)", text, re.IGNORECASE)
    return f"{words[0].lower()} {direction} {found[0].upper() if found else nulls}"
