"""The first bad records of a batch, collected while its rows pass, so that the quarantine needs no second pass.

Rows are counted on their way into a table (Spark's `observe`), and bad ones are collected the same way: at most MOST of
them, none larger than LARGEST, so that a topic full of bad records does not fill the memory. If all bad records of a
batch were collected, the quarantine gets them from there. Otherwise the batch is read again for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.internal import InternalFunction

from ixion.pipelines.formats.added_columns import REASON, RECORD, RECORD_TYPES
from ixion.pipelines.spark.java_classes import java_class

COLLECTED: Final = "collected"  # their name among the counts
MOST: Final = 5000
LARGEST: Final = 4096  # bytes of key and value


def collect(frame: DataFrame) -> dict[str, Column]:
    """The columns to observe of FRAME, which has `_record` and `_reason`."""
    assert RECORD in frame.columns
    size = F.coalesce(F.octet_length(f"{RECORD}.key"), F.lit(0)) + F.octet_length(f"{RECORD}.value")
    row = F.struct(*(F.col(f"{RECORD}.{name}") for name in RECORD_TYPES), F.col(REASON).alias("reason"))
    wanted = F.col(RECORD).isNotNull() & F.col(REASON).isNotNull() & (F.coalesce(size, F.lit(0)) <= LARGEST)
    return {COLLECTED: InternalFunction.collect_top_k(F.when(wanted, row), MOST, False)}


def collected_rows(seen: Sequence[Mapping[str, Any]], like: DataFrame) -> DataFrame | None:
    """All bad rows of SEEN, with the columns of LIKE; None if some were not collected."""
    spark = like.sparkSession
    rows = java_class(spark, "java.util.ArrayList")()
    converters = java_class(spark, "scala.jdk.javaapi.CollectionConverters")
    for counts in seen:
        if not counts["bad"]:
            continue
        found = counts.get(COLLECTED)
        if found is None or found.size() != counts["bad"]:
            return None
        rows.addAll(converters.asJava(found))
    made = spark._jsparkSession.createDataFrame(rows, like._jdf.schema())
    return DataFrame(made, spark).coalesce(1)
