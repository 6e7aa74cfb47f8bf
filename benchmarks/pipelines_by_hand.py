"""A pipeline beside the same job written by hand in PySpark: the same topic, the same Spark, the same rows in Parquet.

The job by hand is what a careful engineer writes on the first day: `from_json` with a schema, a filter for bad records,
a Parquet sink with a checkpoint. It does not count, and bad records are lost. A second one keeps them, in a table of
their own; the strictness of a pipeline it has not: text after the object, repeated keys, new fields and invalid UTF-8
go unnoticed. Rows per second of processor time of the JVM, so that the broker and a busy machine do not count.

Where the time of a JSON record of 1 KB goes (processor time of the JVM with rows from a file, thrown away, loaded
machine, so the parts count, not the sums): reading the row 1.4 us, `from_json` 3.9 us, everything else that a pipeline
does with a record 3.2 us. When its keys were listed by a second reading, that was 5.5 us (see `json_fast_path`).
`from_json` is in no generated stage, so each projection around it copies the row.

By Spark's plans, the job by hand calls `from_json` twice for each record, because Spark moves the filter below the
projection; this costs it 3 us. A pipeline calls it once: `observe`, by which it counts, keeps the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import ixion
from benchmarks.loads.pipeline_jobs import (
    BYTES,
    JSON,
    cpu_seconds,
    drain,
    drain_by_hand,
    drain_keeping_bad,
    produce_json,
)
from benchmarks.pipelines import scratch, spark_session

OURS, BY_HAND, KEEPING = "ixion pipeline", "PySpark by hand", "by hand, bad records kept"
COUNT = 2_000_000
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


def measure(spark: SparkSession, bootstrap: str, folder: Path, count: int, contender: str) -> Mapping[str, float]:
    rows = {}
    for name, (topic, text, _) in JOBS.items():
        begun = cpu_seconds(spark)
        if contender == OURS:
            drain(spark, bootstrap, topic, text, folder)
        elif contender == BY_HAND:
            drain_by_hand(spark, bootstrap, topic, folder)
        elif name == "bad":  # without bad records it has nothing to keep
            drain_keeping_bad(spark, bootstrap, topic, folder)
        else:
            continue
        rows[name] = count / (cpu_seconds(spark) - begun)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    count = COUNT // 50 if session.quick else COUNT
    spark, folder = session.enter(spark_session()), session.enter(scratch())
    server = session.enter(ixion())
    fill(server.bootstrap, count)
    found: dict[str, Contender] = {
        name: partial(measure, spark, server.bootstrap, folder / "work", count, name)
        for name in (OURS, BY_HAND, KEEPING)
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
