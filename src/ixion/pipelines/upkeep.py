"""Table upkeep at the end of a run: small files are joined, old versions removed.

Delta and Iceberg do it by commits of their own; their readers see the table as it was or as it will be. A folder of
Parquet files has no such thing. There a partition's small files are joined into one beside the table, the exchange is
decided by a list (as a batch is, see `sinks/parquet.py`), then the small files are removed and the large one is moved
in. For the milliseconds between the two a reader misses these rows; none are ever seen twice. A run that is killed in
between is finished by the next one, before it does anything else.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from ixion.pipelines.files import Files
from ixion.pipelines.sinks.iceberg import iceberg_name, refresh
from ixion.pipelines.sinks.parquet import ParquetWriter
from ixion.pipelines.spec.sinks import TableSink


def look_after(sink: TableSink, pipeline: str, spark: SparkSession) -> None:
    if sink.upkeep.compact_below_bytes is None and sink.upkeep.keep_ms is None:
        return
    if sink.format == "parquet":
        _compact_parquet(sink, pipeline, spark)
    elif sink.format == "delta":
        _look_after_delta(sink, spark)
    else:
        _look_after_iceberg(sink, spark)


def finish_compaction(sink: TableSink, pipeline: str, spark: SparkSession) -> None:
    """Of a run that was killed."""
    files = Files(spark)
    writer = ParquetWriter(sink, files)
    folder = _lists(writer, pipeline)
    for name in files.names(folder):
        if name.endswith(".json"):
            writer.finish(f"{folder}/{name}", _stage(writer, pipeline))
            files.remove(f"{folder}/{name}")


def _compact_parquet(sink: TableSink, pipeline: str, spark: SparkSession) -> None:
    """Only files that this pipeline wrote: another one may be looking after its own."""
    files = Files(spark)
    writer = ParquetWriter(sink, files)
    small: dict[str, list[str]] = {}
    for name, size in files.walk(writer.table):
        folder, _, file = name.rpartition("/")
        if (
            file.startswith(f"{pipeline}-")
            and file.endswith(".parquet")
            and size < (sink.upkeep.compact_below_bytes or 0)
        ):
            small.setdefault(folder, []).append(name)
    for folder, names in small.items():
        if len(names) > 1:
            _join(writer, files, pipeline, folder, names, spark)


def _join(
    writer: ParquetWriter, files: Files, pipeline: str, folder: str, names: list[str], spark: SparkSession
) -> None:
    stage, mark = _stage(writer, pipeline), uuid.uuid4().hex[:8]
    files.remove(stage)
    # The folder names its partition, so its columns are not in the files; they are read one by one, without it.
    rows = spark.read.option("recursiveFileLookup", "true").parquet(*(f"{writer.table}/{name}" for name in names))
    rows.coalesce(1).write.options(**writer.sink.options).parquet(f"{stage}/{mark}")
    (staged,) = [name for name, _ in files.walk(f"{stage}/{mark}") if name.endswith(".parquet")]
    final = f"{pipeline}-joined-{mark}{staged[staged.index('c000') + 4 :]}"
    listing = {"replaces": names, "moves": [(f"{mark}/{staged}", f"{folder}/{final}" if folder else final)]}
    listed = f"{_lists(writer, pipeline)}/{mark}.json"
    files.write_new(listed, json.dumps(listing, indent=1))
    writer.finish(listed, stage)
    files.remove(listed)


def _look_after_delta(sink: TableSink, spark: SparkSession) -> None:
    if sink.upkeep.compact_below_bytes is not None:
        spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(sink.upkeep.compact_below_bytes))
        spark.sql(f"OPTIMIZE delta.`{sink.path}`")
    if sink.upkeep.keep_ms is not None:
        # Delta refuses less than a week unless told that it is meant; whoever writes it in the file means it.
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        spark.sql(f"VACUUM delta.`{sink.path}` RETAIN {sink.upkeep.keep_ms / 3_600_000} HOURS")


def _look_after_iceberg(sink: TableSink, spark: SparkSession) -> None:
    name = iceberg_name(sink, spark)
    refresh(name, spark)
    catalog, _, table = name.partition(".")
    if sink.upkeep.compact_below_bytes is not None:
        options = f"map('min-input-files', '2', 'min-file-size-bytes', '{sink.upkeep.compact_below_bytes}')"
        spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{table}', options => {options})")
    if sink.upkeep.keep_ms is not None:
        before = datetime.now(UTC) - timedelta(milliseconds=sink.upkeep.keep_ms)
        moment = f"TIMESTAMP '{before:%Y-%m-%d %H:%M:%S.%f}'"
        spark.sql(f"CALL {catalog}.system.expire_snapshots(table => '{table}', older_than => {moment})")


def _lists(writer: ParquetWriter, pipeline: str) -> str:
    return f"{writer.table}/_ixion/{pipeline}/joins"


def _stage(writer: ParquetWriter, pipeline: str) -> str:
    return f"{writer.staging}/{pipeline}/joins"
