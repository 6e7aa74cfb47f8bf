"""Removes records from a quarantine table, by topic, partition, offset and timestamp. Without the timestamp, records of
a topic that was deleted and recreated would be mistaken for those of the old one, which have the same offsets.

Delta and Iceberg do it by one MERGE. In a folder of Parquet files, each file with such records is replaced by one
without them, as in `join_parquet`: only files of this pipeline, and no row is there twice at any moment.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ixion.pipelines.sinks.iceberg import iceberg_name, refresh
from ixion.pipelines.sinks.parquet import ParquetWriter, is_file_of
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spec.sinks import TableSink
from ixion.pipelines.upkeep.join_parquet import exchange, read_files

PLACE: Final = ("topic", "partition", "offset", "timestamp")  # identifies a record
_GONE: Final = "ixion_gone"


def quarantine_rows(sink: TableSink, pipeline: str, spark: SparkSession) -> DataFrame | None:
    """What is in the quarantine table; of a Parquet table, what PIPELINE put there. None if there is no table."""
    files = Files(spark)
    if sink.format == "parquet":
        names = _own_files(sink, pipeline, files)
        return read_files(ParquetWriter(sink, files), names, spark) if names else None
    if sink.format == "delta":
        there = files.has_table_log(sink.path)
        return spark.read.format("delta").load(sink.path) if there else None
    name = iceberg_name(sink, spark)
    if not spark.catalog.tableExists(name):
        return None
    refresh(name, spark)
    return spark.table(name)


def remove_rows(sink: TableSink, pipeline: str, places: DataFrame, spark: SparkSession) -> None:
    """PLACES has the columns PLACE of each record, once. Missing records are ignored."""
    if sink.format == "parquet":
        _remove_from_files(sink, pipeline, places, spark)
        return
    table = f"delta.`{sink.path}`" if sink.format == "delta" else iceberg_name(sink, spark)
    places.createOrReplaceTempView(_GONE)
    same = " AND ".join(f"t.`{name}` = s.`{name}`" for name in PLACE)
    spark.sql(f"MERGE INTO {table} t USING {_GONE} s ON {same} WHEN MATCHED THEN DELETE")
    spark.catalog.dropTempView(_GONE)


def _remove_from_files(sink: TableSink, pipeline: str, places: DataFrame, spark: SparkSession) -> None:
    files = Files(spark)
    writer = ParquetWriter(sink, files)
    for name in _own_files(sink, pipeline, files):
        rows = read_files(writer, [name], spark)
        if not rows.join(places, list(PLACE), "left_semi").isEmpty():
            order = [F.col(f"`{column}`") for column in rows.columns]
            rest = rows.join(places, list(PLACE), "left_anti").select(*order)
            exchange(writer, files, pipeline, [name], rest)


def _own_files(sink: TableSink, pipeline: str, files: Files) -> list[str]:
    found = (name for name, _ in files.walk(sink.path.rstrip("/")))
    return [name for name in found if is_file_of(pipeline, name.rpartition("/")[2])]
