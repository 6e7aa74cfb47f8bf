"""Draining topics to Parquet on Spark, from ixion and from Apache Kafka 3.9.1: the same pipeline in the same Spark.

Both brokers hold the same records and are both there all the time; in a round each is drained once, with a new
checkpoint and an empty table. The time is that of a whole run (`Pipeline.run`) with Spark started already: asking the
broker, planning, reading, writing, committing. Spark's compiler is warm: the first round is thrown away. Spark has all
cores, which it shares with the broker that it reads from, as on a machine of one's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import apache_kafka, ixion
from benchmarks.loads.pipeline_jobs import BYTES, STEPS, drain, produce_json
from devtools import jars
from ixion.pipelines import open_session

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
SIZES = {100: ("100 B", 5_000_000), 1000: ("1 KB", 500_000)}
SPLITS = (1, 2, 3, 4)  # minPartitions, over a topic of one partition
JSON_COUNT = 500_000


def connector_jars() -> list[str]:
    folder = Path(jars.classpath("spark-4.0.0").partition(":")[0])
    ours = ("spark-", "kafka-clients", "commons-pool2")
    return sorted(str(path) for path in folder.glob("*.jar") if path.name.startswith(ours))


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    session = open_session("bench", conf={"spark.driver.memory": "2g"}, jars=connector_jars())
    yield session
    session.stop()


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ixion-bench-") as name:
        yield Path(name)


def fill(bootstrap: str, scale: float) -> None:
    fresh(clients.first_ack, bootstrap)
    fresh(clients.create_topics, bootstrap, {"size-100": 2, "size-1000": 2, "one": 1, "json": 2, "few": 1})
    for size, (_, count) in SIZES.items():
        fresh(clients.produce, bootstrap, f"size-{size}", 2, size, int(count * scale), 1)
    fresh(clients.produce, bootstrap, "one", 1, 1000, int(SIZES[1000][1] * scale), 1)
    fresh(clients.produce, bootstrap, "few", 1, 100, 100, 1)
    fresh(produce_json, bootstrap, "json", int(JSON_COUNT * scale))


def measure(spark: SparkSession, bootstrap: str, folder: Path, scale: float) -> Mapping[str, float]:
    rows = {"first": drain(spark, bootstrap, "few", BYTES, folder)}
    for size, (_, count) in SIZES.items():
        rows[f"drain-{size}"] = count * scale / drain(spark, bootstrap, f"size-{size}", BYTES, folder)
    for split in SPLITS:
        seconds = drain(spark, bootstrap, "one", BYTES, folder, f"min_partitions = {split}")
        rows[f"split-{split}"] = SIZES[1000][1] * scale / seconds
    for label, text in STEPS.items():
        rows[label] = JSON_COUNT * scale / drain(spark, bootstrap, "json", text, folder)
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.02 if session.quick else 1.0
    spark, folder = session.enter(spark_session()), session.enter(scratch())
    found: dict[str, Contender] = {}
    for name, start in ((OURS, ixion), (KAFKA, apache_kafka)):
        server = session.enter(start())
        fill(server.bootstrap, scale)
        found[name] = partial(measure, spark, server.bootstrap, folder / "work", scale)
        found[name]()
    return found


BENCHMARK = Benchmark(
    name="pipelines",
    title="From a topic to Parquet on Spark",
    rows=(
        *(
            Row(key=f"drain-{size}", label=f"drain {label} records", unit="rows/s")
            for size, (label, _) in SIZES.items()
        ),
        Row(key="first", label="time to the first row, Spark running", unit="s"),
        *(
            Row(key=f"split-{split}", label=f"1 KB, 1 partition, minPartitions {split}", unit="rows/s")
            for split in SPLITS
        ),
        *(Row(key=label, label=label, unit="rows/s", charted=False) for label in STEPS),
    ),
    goals=tuple(
        Goal(
            label=f"drain {label} as fast as from Kafka",
            value=(f"drain-{size}", OURS),
            base=(f"drain-{size}", KAFKA),
            at_least=1.0,
        )
        for size, (label, _) in SIZES.items()
    ),
    baseline=KAFKA,
    contenders=contenders,
    rounds=3,
)
