"""The pipelines that are timed, and the topics they read."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

from ixion.pipelines import Pipeline
from ixion.pipelines.spark.session import jvm_pid
from ixion.pipelines.spec import read_spec

BYTES = '[format]\ntype = "bytes"\n'
SCHEMA = "id STRING, n INT, at TIMESTAMP, pad STRING"
JSON = f'[format]\ntype = "json"\nschema = "{SCHEMA}"\n'
EXPECT = '[[expectations]]\ncheck = "n >= 0"\notherwise = "quarantine"\n'
SQL = "[[steps]]\nsql = \"SELECT *, n * 2 AS twice, date_trunc('HOUR', at) AS hour FROM stream\"\n"
ONCE = '[[steps]]\nwatermark = { column = "at", delay = "1 hour" }\n[[steps]]\ndeduplicate = ["id"]\n'
# What each step adds: every job has what the one before it has, and one thing more.
STEPS: Mapping[str, str] = {
    "parse JSON": JSON,
    "+ an expectation": JSON + EXPECT,
    "+ a SQL step": JSON + EXPECT + SQL,
    "+ de-duplication": JSON + EXPECT + SQL + ONCE,
}


def drain(spark: SparkSession, bootstrap: str, topic: str, text: str, folder: Path, more: str = "") -> float:
    """Seconds that a pipeline takes to drain TOPIC to Parquet, from the first question to the last commit."""
    shutil.rmtree(folder, ignore_errors=True)
    source = f'name = "bench"\n[source]\nbootstrap = "{bootstrap}"\ntopics = ["{topic}"]\n{more}\n'
    pipeline = Pipeline(read_spec(f'{source}{text}[[sinks]]\ntype = "parquet"\npath = "out"\n', folder=folder))
    begun = time.perf_counter()
    figures = pipeline.run(spark)
    assert figures.lag == 0
    return time.perf_counter() - begun


def drain_by_hand(spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
    """What one writes without pipelines: TOPIC to Parquet, and bad records are left out."""
    shutil.rmtree(folder, ignore_errors=True)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.readStream.format("kafka").options(**options).load().select("value")
    if topic != "bytes":
        data = from_json(col("value").cast("string"), SCHEMA, {"mode": "PERMISSIVE"})
        rows = rows.select(data.alias("data")).select("data.*").where("id IS NOT NULL")
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()


def drain_keeping_bad(spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
    """As `drain_by_hand`, but bad records go to a second table, as they came.

    Spark marks a record that it cannot read (`_corrupt_record`). The rows of a batch are cached, since both tables
    are made from them.
    """
    shutil.rmtree(folder, ignore_errors=True)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    data = from_json(col("value").cast("string"), f"{SCHEMA}, _corrupt_record STRING", {"mode": "PERMISSIVE"})
    rows = spark.readStream.format("kafka").options(**options).load().select(data.alias("data")).select("data.*")

    def write(batch: DataFrame, number: int) -> None:  # noqa: ARG001 - Spark's signature
        batch.persist()
        good = batch.where("_corrupt_record IS NULL").drop("_corrupt_record")
        good.write.mode("append").parquet(str(folder / "out"))
        bad = batch.where("_corrupt_record IS NOT NULL").select("_corrupt_record")
        bad.write.mode("append").parquet(str(folder / "quarantine"))
        batch.unpersist()

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def cpu_seconds(spark: SparkSession) -> float:
    """Of the JVM so far."""
    fields = Path(f"/proc/{jvm_pid(spark)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def produce_json(bootstrap: str, topic: str, count: int, pad: int = 30, bad_every: int = 0) -> None:
    """About 70 bytes and PAD each; if BAD_EVERY is given, one in so many cannot be read."""
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    for number in range(count):
        record = {"id": f"o{number}", "n": number % 100, "at": "2026-01-31T08:00:00Z", "pad": "x" * pad}
        bad = bad_every and number % bad_every == 0
        producer.produce(topic, "bad" if bad else json.dumps(record), partition=number % 2)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
