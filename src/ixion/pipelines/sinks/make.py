"""From a declared sink to its writer; and `write_table`, the same for a job of one's own."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.files import Files
from ixion.pipelines.sinks.base import Batch, Writer
from ixion.pipelines.sinks.console import ConsoleWriter
from ixion.pipelines.sinks.delta import DeltaWriter
from ixion.pipelines.sinks.iceberg import IcebergWriter
from ixion.pipelines.sinks.parquet import ParquetWriter
from ixion.pipelines.sinks.topic import TopicWriter
from ixion.pipelines.sinks.upsert import UpsertWriter
from ixion.pipelines.spec.sinks import Sink, TableSink, TopicSink


def make_writer(sink: Sink, spark: SparkSession) -> Writer:
    if isinstance(sink, TopicSink):
        return TopicWriter(sink)
    if not isinstance(sink, TableSink):
        return ConsoleWriter(sink)
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
    """Writes one micro-batch exactly once; to be called in a foreachBatch of one's own.

        query = frame.writeStream.foreachBatch(
            lambda rows, number: rows.transform(write_table, "delta", path, job="shop", query=ID, batch=number)
        )

    QUERY must live as long as the checkpoint does: Spark's query.id, or a constant that is changed when the checkpoint
    is thrown away. FRAME is given back.
    """
    sink = TableSink(format=format, path=path, partition_by=partition_by)
    make_writer(sink, frame.sparkSession).write(frame, Batch(pipeline=job, query=query, number=batch))
    return frame
