"""`format("ixion")` beside Spark's Kafka connector: the same topic, the same Spark, rows thrown away by a noop sink.

Rows per second of processor time count the JVM and its Python workers; the broker does not count.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import ixion
from benchmarks.loads.cpu import tree_seconds
from benchmarks.pipelines import spark_session
from ixion.pipelines.spark.session import jvm_pid

OURS, CONNECTOR = 'format("ixion")', 'format("kafka")'
SIZES = {100: ("100 B", 4_000_000), 1000: ("1 KB", 800_000)}


def measure(spark: SparkSession, kind: str, bootstrap: str, scale: float) -> Mapping[str, float]:
    rows = {}
    for size, (_, count) in SIZES.items():
        options = {"kafka.bootstrap.servers": bootstrap, "subscribe": f"size-{size}"}
        begun, cpu = time.perf_counter(), tree_seconds(jvm_pid(spark))
        spark.read.format(kind).options(**options).load().write.format("noop").mode("overwrite").save()
        rows[f"read-{size}"] = count * scale / (time.perf_counter() - begun)
        rows[f"read-{size}-cpu"] = count * scale / (tree_seconds(jvm_pid(spark)) - cpu)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.05 if session.quick else 1.0
    spark = session.enter(spark_session())
    server = session.enter(ixion())
    fresh(clients.first_ack, server.bootstrap)
    fresh(clients.create_topics, server.bootstrap, {f"size-{size}": 2 for size in SIZES})
    for size, (_, count) in SIZES.items():
        fresh(clients.produce, server.bootstrap, f"size-{size}", 2, size, int(count * scale), 1)
    found: dict[str, Contender] = {
        OURS: partial(measure, spark, "ixion", server.bootstrap, scale),
        CONNECTOR: partial(measure, spark, "kafka", server.bootstrap, scale),
    }
    for contender in found.values():
        contender()
    return found


BENCHMARK = Benchmark(
    name="spark_source",
    title="Spark without a JVM connector",
    rows=tuple(
        Row(key=f"read-{size}{suffix}", label=f"read {label} records{words}", unit="rows/s", charted=not suffix)
        for size, (label, _) in SIZES.items()
        for suffix, words in (("", ""), ("-cpu", ", per second of processor time"))
    ),
    goals=tuple(
        Goal(
            label=f"{label}: as many rows per second and core as the connector",
            value=(f"read-{size}-cpu", OURS),
            base=(f"read-{size}-cpu", CONNECTOR),
            at_least=1.0,
        )
        for size, (label, _) in SIZES.items()
    ),
    baseline=CONNECTOR,
    contenders=contenders,
    rounds=3,
)
