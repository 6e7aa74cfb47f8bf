"""Makes the writer of a sink; and `write_table`, to write exactly once in a PySpark job of your own."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.sinks.base import Batch, Table, Writer
from ixion.pipelines.sinks.console import ConsoleWriter
from ixion.pipelines.sinks.delta import DeltaWriter
from ixion.pipelines.sinks.iceberg import IcebergWriter
from ixion.pipelines.sinks.parquet import ParquetWriter
from ixion.pipelines.sinks.topic import ExactTopicWriter, TopicWriter
from ixion.pipelines.sinks.upsert import UpsertWriter
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spec.sinks import Sink, TableSink, TopicSink


def make_writer(sink: Sink, spark: SparkSession) -> Writer:
    if isinstance(sink, TopicSink):
        return ExactTopicWriter(sink) if sink.exactly_once else TopicWriter(sink)
    if not isinstance(sink, TableSink):
        return ConsoleWriter(sink)
    return make_table(sink, spark)


def make_table(sink: TableSink, spark: SparkSession) -> Table:
    if sink.format in ("delta", "iceberg"):
        table = DeltaWriter(sink, spark) if sink.format == "delta" else IcebergWriter(sink, spark)
        return UpsertWriter(sink, table, spark) if sink.upsert else table
    return ParquetWriter(sink, Files(spark))


def write_table(
    frame: DataFrame,
    format: str,  # noqa: A002 - it is called so in Spark and in the pipeline file
    path: str,
    *,
    job: str,
    query: str,
    batch: int,
    partition_by: tuple[str, ...] = (),
) -> DataFrame:
    """Write one micro-batch exactly once; call it in your own foreachBatch.

        query = frame.writeStream.foreachBatch(
            lambda rows, number: rows.transform(write_table, "delta", path, job="shop", query=ID, batch=number)
        )

    QUERY must stay the same as long as the checkpoint: Spark's query.id, or a constant that you change with the
    checkpoint. Returns FRAME.
    """
    sink = TableSink(format=format, path=path, partition_by=partition_by)
    make_writer(sink, frame.sparkSession).write(frame, Batch(pipeline=job, query=query, number=batch))
    return frame
