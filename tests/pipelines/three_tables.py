"""The pipeline that is killed in tests and soaks: numbered records into a table of each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.pipelines.support import parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "numbers"
_SOURCE = """
[source]
bootstrap = "{bootstrap}"
topics = ["{topic}"]
create_missing = true
include = ["partition", "offset"]
max_records_per_batch = {batch}
[format]
type = "json"
schema = "n INT, half INT"
{more}"""


def three_tables(
    bootstrap: str, *, batch: int, steps: str = "", upkeep: str = "", keep: str = "", more: str = ""
) -> str:
    """The pipeline file. UPKEEP goes to all tables, KEEP to those that have old versions, MORE to the format."""
    text = _SOURCE.format(bootstrap=bootstrap, topic=TOPIC, batch=batch, more=more) + steps
    for kind in ("parquet", "delta", "iceberg"):
        by = 'partition_by = ["half"]\n' if kind == "parquet" else ""
        text += f'[[sinks]]\ntype = "{kind}"\npath = "{kind}"\n{by}'
        if upkeep:
            text += f"[sinks.upkeep]\n{upkeep}\n" + (f"{keep}\n" if kind != "parquet" else "")
    return text


def quarantined_rows(folder: Path) -> list[dict[str, Any]]:
    """As rows of a table."""
    found = parquet_rows(folder / "parquet_quarantine")
    places = ({"kafka_partition": row["partition"], "kafka_offset": row["offset"]} for row in found)
    return [{**json.loads(row["value"]), **place} for row, place in zip(found, places, strict=True)]


def rows_of_tables(folder: Path, spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    """Parquet is read without Spark."""
    tables = {"parquet": parquet_rows(folder / "parquet")}
    for kind in ("delta", "iceberg"):
        there = folder.joinpath(kind).is_dir()  # a run that was killed early has not made it yet
        tables[kind] = (
            [row.asDict() for row in spark.read.format(kind).load(str(folder / kind)).collect()] if there else []
        )
    return tables
