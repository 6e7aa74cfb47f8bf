"""Upkeep of tables: join small files, cluster rows, remove old versions and files that belong to no version.

Delta and Iceberg have procedures for it, which commit beside readers and beside writers that only add rows. Files of
plain Parquet are joined by `join_parquet`. Upkeep happens at the end of a run; with `every`, on a thread beside a
running pipeline; or by `ixion pipeline upkeep`, at any time:

    | | rows are added | rows are changed (upsert) | Parquet |
    |---|---|---|---|
    | the pipeline runs in this process | beside it; see `waits_for_batches` | between two batches | beside it |
    | the pipeline runs in another process | beside it | postponed | postponed |
    | the pipeline does not run | at once | a run that starts waits | a run that starts waits |

Upserts are the exception because a MERGE and a compaction of the same file cannot both commit, and the run must win.
While the pipeline runs in another process, versions younger than a day are kept, even if `keep` is shorter: a file that
a batch has written but not committed looks like one that belongs to no version.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from pyspark.sql import SparkSession

from ixion.pipelines.checkpoint.run_records import utc_now
from ixion.pipelines.sinks.fit import is_there
from ixion.pipelines.sinks.iceberg import iceberg_name, refresh
from ixion.pipelines.sinks.shape import text_of
from ixion.pipelines.spec.sinks import TableSink
from ixion.pipelines.upkeep.join_parquet import compact_parquet
from ixion.pipelines.upkeep.results import Upkept

DAY_MS: Final = 24 * 3_600_000
NO_TABLE: Final = "there is no table yet"


def is_due(sink: TableSink, last: str | None, now: datetime) -> bool:
    """LAST is the time of the last upkeep. If the clock was set back behind it, the next one is due at once."""
    if not sink.upkeep.wanted:
        return False
    if sink.upkeep.every_ms is None or last is None:
        return True
    before = datetime.fromisoformat(last)
    return before > now or now - before >= timedelta(milliseconds=sink.upkeep.every_ms)


def stands_aside(sink: TableSink) -> bool:
    """Whether upkeep of SINK waits until the pipeline does not run, or runs between its batches."""
    return sink.format == "parquet" or sink.upsert is not None


def waits_for_batches(sink: TableSink) -> bool:
    """Whether upkeep of SINK waits for the end of a batch of this process. Delta's VACUUM removes files that belong to
    no version, also those of an uncommitted batch, unless they are younger than `keep`."""
    keep_ms = sink.upkeep.keep_ms
    return sink.upsert is not None or (sink.format == "delta" and keep_ms is not None and keep_ms < DAY_MS)


def look_after(
    sink: TableSink, pipeline: str, spark: SparkSession, *, beside: bool = False, now: Callable[[], datetime] = utc_now
) -> Upkept:
    """Do the upkeep of SINK. BESIDE: the pipeline may be running in another process."""
    begun, moment = time.monotonic(), now()
    done = Upkept(table=sink.label, at=moment.isoformat(timespec="seconds"))
    if beside and sink.upkeep.keep_ms is not None:
        sink = replace(sink, upkeep=replace(sink.upkeep, keep_ms=max(sink.upkeep.keep_ms, DAY_MS)))
    if sink.format == "parquet":
        joined, into = compact_parquet(sink, pipeline, spark)
        done = replace(done, joined=joined, into=into)
    elif sink.format == "delta":
        done = _look_after_delta(sink, spark, done)
    else:
        done = _look_after_iceberg(sink, spark, done, moment)
    return replace(done, seconds=round(time.monotonic() - begun, 3))


def _look_after_delta(sink: TableSink, spark: SparkSession, done: Upkept) -> Upkept:
    upkeep, table = sink.upkeep, f"delta.`{sink.path}`"
    if not is_there(sink, spark):
        return replace(done, left=NO_TABLE)
    if upkeep.compact_below_bytes is not None or upkeep.cluster_by:
        if upkeep.compact_below_bytes is not None:
            spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(upkeep.compact_below_bytes))
        order = f" ZORDER BY ({', '.join(map(_quoted, upkeep.cluster_by))})" if upkeep.cluster_by else ""
        metrics = spark.sql(f"OPTIMIZE {table}{order}").collect()[0]["metrics"]
        done = replace(done, joined=int(metrics["numFilesRemoved"]), into=int(metrics["numFilesAdded"]))
    if upkeep.keep_ms is not None:
        # Delta refuses less than a week unless this is off; a time in the file is deliberate.
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        spark.conf.set("spark.databricks.delta.vacuum.logging.enabled", "true")  # so that the history has its figures
        before = _newest_version(table, spark)
        spark.sql(f"VACUUM {table} RETAIN {upkeep.keep_ms / 3_600_000} HOURS")
        history = spark.sql(f"DESCRIBE HISTORY {table}").where(f"version > {before}")
        for row in history.select("operation", "operationMetrics").collect():
            metrics = row["operationMetrics"] or {}
            files, size = metrics.get("numDeletedFiles", 0), metrics.get("sizeOfDataToDelete", 0)
            done = replace(
                done, removed_files=done.removed_files + int(files), removed_bytes=done.removed_bytes + int(size)
            )
    return done


def _newest_version(table: str, spark: SparkSession) -> int:
    return int(spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"])


def _look_after_iceberg(sink: TableSink, spark: SparkSession, done: Upkept, moment: datetime) -> Upkept:
    upkeep, name = sink.upkeep, iceberg_name(sink, spark)
    if not is_there(sink, spark):
        return replace(done, left=NO_TABLE)
    refresh(name, spark)
    catalog, _, table = name.partition(".")

    def call(procedure: str, arguments: str) -> Any:
        return spark.sql(f"CALL {catalog}.system.{procedure}(table => '{text_of(table)}'{arguments})").collect()

    if upkeep.compact_below_bytes is not None or upkeep.cluster_by:
        options = "'min-input-files', '2'"
        if upkeep.compact_below_bytes is not None:
            options += f", 'min-file-size-bytes', '{upkeep.compact_below_bytes}'"
        arguments = f", options => map({options})"
        if upkeep.cluster_by:
            order = ", ".join(upkeep.cluster_by)
            order = f"zorder({order})" if len(upkeep.cluster_by) > 1 else order
            arguments += f", strategy => 'sort', sort_order => '{order}'"
        elif sink.sort_by:
            arguments += ", strategy => 'sort'"  # by the order of the table
        (row,) = call("rewrite_data_files", arguments)
        done = replace(done, joined=row["rewritten_data_files_count"], into=row["added_data_files_count"])
    if upkeep.keep_ms is not None:
        before = _snapshots(name, spark)
        size = _bytes_of(name, spark)
        older = moment - timedelta(milliseconds=upkeep.keep_ms)
        (row,) = call("expire_snapshots", f", older_than => TIMESTAMP '{older:%Y-%m-%d %H:%M:%S.%f}+00:00'")
        refresh(name, spark)
        removed = sum(int(row[column] or 0) for column in row.asDict() if column.endswith("_files_count"))
        done = replace(
            done,
            removed_versions=before - _snapshots(name, spark),
            removed_files=removed,
            removed_bytes=max(0, size - _bytes_of(name, spark)),
        )
    if upkeep.orphans_ms is not None:
        older = moment - timedelta(milliseconds=upkeep.orphans_ms)
        rows = call("remove_orphan_files", f", older_than => TIMESTAMP '{older:%Y-%m-%d %H:%M:%S.%f}+00:00'")
        done = replace(done, removed_files=done.removed_files + len(rows))
    return done


def _snapshots(name: str, spark: SparkSession) -> int:
    return spark.table(f"{name}.snapshots").count()


def _bytes_of(name: str, spark: SparkSession) -> int:
    """The size of all data files of all versions."""
    refresh(name, spark)
    files = spark.table(f"{name}.all_data_files").select("file_path", "file_size_in_bytes").distinct()
    return int(files.agg({"file_size_in_bytes": "sum"}).collect()[0][0] or 0)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
