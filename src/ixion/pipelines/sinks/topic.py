"""Into another topic: at least once with headers by which a reader can skip repeated rows, or exactly once.

Spark's Kafka sink has no transactions: a batch that fails and is repeated leaves rows of both attempts in the topic.
So every record has two headers, the same in every attempt:

    ixion-batch   <pipeline>-<query>/<batch>
    ixion-row     <hash of key and value>-<number of equal rows before it in the batch>

Two records with the same two headers are one row. In Spark, `once` keeps the first of each; other readers can do the
same. The rows of a key keep their order. Rows must not contain random values (`rand()`, `uuid()`), or their hashes
differ.

`exactly_once` writes by our own data source, which writes each batch in one transaction and knows those that it has
written (`ixion.spark.commit`). There, readers of committed records see each row once, without these headers.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.spec.sinks import TopicSink

BATCH_HEADER: Final = "ixion-batch"
ROW_HEADER: Final = "ixion-row"


class TopicWriter:
    is_table = False

    def __init__(self, sink: TopicSink) -> None:
        self.sink: Final = sink

    def has(self, batch: Batch) -> bool:  # noqa: ARG002 - a topic cannot be asked
        return False

    def knows(self, pipeline: str) -> bool:  # noqa: ARG002 - a topic cannot be asked
        return False

    def write(self, frame: DataFrame, batch: Batch) -> None:
        records = to_records(frame, self.sink, batch)
        options = {"kafka.bootstrap.servers": self.sink.bootstrap, "includeHeaders": "true", **self.sink.options}
        records.write.format("kafka").option("topic", self.sink.topic).options(**options).save()


class ExactTopicWriter:
    is_table = True

    def __init__(self, sink: TopicSink) -> None:
        self.sink: Final = sink

    def has(self, batch: Batch) -> bool:  # noqa: ARG002 - the data source compares the rows of a repeated batch
        return False

    def knows(self, pipeline: str) -> bool:  # noqa: ARG002 - a topic cannot be asked
        return False

    def write(self, frame: DataFrame, batch: Batch) -> None:
        options = {
            **self.sink.options,
            "kafka.bootstrap.servers": self.sink.bootstrap,
            "topic": self.sink.topic,
            "txnAppId": batch.writer,
            "txnVersion": str(batch.number),
        }
        key_and_value(frame, self.sink).write.format("ixion").options(**options).mode("append").save()


def key_and_value(frame: DataFrame, sink: TopicSink) -> DataFrame:
    value = F.col(sink.value) if sink.value else F.to_json(F.struct(*frame.columns))
    key = F.col(sink.key).cast("string") if sink.key else F.lit(None).cast("string")
    return frame.select(_bytes(key).alias("key"), _bytes(value).alias("value"))


def to_records(frame: DataFrame, sink: TopicSink, batch: Batch) -> DataFrame:
    records = key_and_value(frame, sink)
    # All rows of a key go to one task, which keeps their order; rows without a key are spread by their value.
    spread = F.when(F.col("key").isNull(), F.col("value"))
    placed = records.withColumns({"spread": spread, "place": F.monotonically_increasing_id()})
    placed = placed.repartition("key", "spread")
    twins = Window.partitionBy("key", "spread", "value").orderBy("place")
    row = F.concat_ws("-", F.hex(F.xxhash64("key", "value")), F.row_number().over(twins) - 1)
    headers = F.array(
        _header(BATCH_HEADER, F.lit(f"{batch.writer}/{batch.number}")),
        _header(ROW_HEADER, F.col("row")),
    )
    numbered = placed.withColumn("row", row).sortWithinPartitions("place")
    return numbered.select("key", "value", headers.alias("headers"))


def once(frame: DataFrame) -> DataFrame:
    """FRAME without repeated rows; it is from `read_topic`, of a topic that a pipeline wrote."""
    batch, row = _header_value(BATCH_HEADER), _header_value(ROW_HEADER)
    marked = frame.withColumns({"_batch": batch, "_row": row})
    return marked.dropDuplicates(["_batch", "_row"]).drop("_batch", "_row")


def _bytes(column: Column) -> Column:
    return column.cast("string").cast("binary")


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _header_value(name: str) -> Column:
    mine = F.filter("headers", lambda header: header["key"] == F.lit(name))
    return F.get(mine, F.lit(0))["value"]
