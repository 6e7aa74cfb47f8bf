"""A pipeline beside the same job written by hand in PySpark: the same topic, the same Spark, the same rows in Parquet.

The job by hand is what a careful engineer writes on the first day: `from_json` with a schema, a filter for bad records,
a Parquet sink with a checkpoint. It does not count, and bad records are gone. Rows per second of processor time of the
JVM, so that the broker and a busy machine do not count.

Where the time of a JSON record of 1 KB goes (processor time of Spark's tasks, rows thrown away, loaded machine): the
read from the topic takes 2.4 to 2.9 us, `from_json` 6.4 us, our look at its keys and its end (see
`ixion.pipelines.usual`) 1.7 us; counting and putting bad records aside is within the noise.

By Spark's plans, the job by hand calls `from_json` twice for each record: Spark moves the filter below the projection.
Ours calls it once, since what is counted (`observe`) keeps the two apart. What ours has more of is the look at the
keys, and rows that are put together anew: `from_json` is in no generated stage, so each projection around it copies
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import ixion
from benchmarks.loads.pipeline_jobs import BYTES, JSON, cpu_seconds, drain, drain_by_hand, produce_json
from benchmarks.pipelines import scratch, spark_session

OURS, BY_HAND = "ixion pipeline", "PySpark by hand"
COUNT = 1_000_000
PAD = 900  # bytes; about 1 KB a record with the rest
JOBS = {  # row -> what is drained, the format, the label
    "bytes": ("bytes", BYTES, "bytes"),
    "json": ("json", JSON, "JSON"),
    "bad": ("bad", JSON, "JSON, one record in a thousand is bad"),
}


def fill(bootstrap: str, count: int) -> None:
    fresh(clients.first_ack, bootstrap)
    fresh(clients.create_topics, bootstrap, {"bytes": 2, "json": 2, "bad": 2})
    fresh(clients.produce, bootstrap, "bytes", 2, 1000, count, 1)
    fresh(produce_json, bootstrap, "json", count, PAD)
    fresh(produce_json, bootstrap, "bad", count, PAD, 1000)


def measure(spark: SparkSession, bootstrap: str, folder: Path, count: int, by_hand: bool) -> Mapping[str, float]:
    rows = {}
    for name, (topic, text, _) in JOBS.items():
        begun = cpu_seconds(spark)
        if by_hand:
            drain_by_hand(spark, bootstrap, topic, folder)
        else:
            drain(spark, bootstrap, topic, text, folder)
        rows[name] = count / (cpu_seconds(spark) - begun)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    count = COUNT // 50 if session.quick else COUNT
    spark, folder = session.enter(spark_session()), session.enter(scratch())
    server = session.enter(ixion())
    fill(server.bootstrap, count)
    found: dict[str, Contender] = {
        name: partial(measure, spark, server.bootstrap, folder / "work", count, name == BY_HAND)
        for name in (OURS, BY_HAND)
    }
    for contender in found.values():
        contender()
    return found


BENCHMARK = Benchmark(
    name="pipelines_by_hand",
    title="A pipeline beside the same job by hand",
    rows=tuple(Row(key=name, label=label, unit="rows/CPU s") for name, (_, _, label) in JOBS.items()),
    goals=tuple(
        Goal(label=f"{label}, as by hand", value=(name, OURS), base=(name, BY_HAND), at_least=0.95)
        for name, (_, _, label) in JOBS.items()
    ),
    baseline=BY_HAND,
    contenders=contenders,
    rounds=3,
)
