"""What the tests of pipelines share: sending records, writing pipeline files, reading tables without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from devtools import jars
from devtools.jvm import QUICK
from ixion.pipelines.spec import read_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ixion.pipelines.batch.metrics import RunFigures
    from ixion.pipelines.pipeline import Pipeline

JARS = "spark-4.0.0"
PATIENCE_S = 240  # for what must come sooner or later: a JVM on a busy machine takes its time
# Without its second compiler a JVM keeps 48 MB of compiled code. Spark fills that within a minute; from then on code is
# dropped, interpreted and compiled again all the time. Room for classes from the start saves a few full collections.
JAVA_OPTIONS = (*QUICK, "-XX:ReservedCodeCacheSize=240m", "-XX:MetaspaceSize=256m")
SMALL = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.extraJavaOptions": " ".join(JAVA_OPTIONS),
    "spark.python.worker.faulthandler.enabled": "false",
}
# For the Spark that all tests share and that is never killed: Spark's other way to write a checkpoint. The usual one
# starts `readlink` and `chmod` a dozen times for every batch. A plan for a few rows is interpreted as it stands:
# generating and compiling its code takes longer than running it. Pipelines in processes of their own compile it.
SHARED = {
    **SMALL,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager"
    ),
}
OUR_JARS = {
    "kafka": ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2"),
    "avro": ("spark-avro",),
    "delta": ("delta-",),
    "iceberg": ("iceberg-",),
}
Value = str | bytes | dict[str, Any] | None


def spark_jars(*formats: str) -> tuple[str, ...]:
    """As `--jars` takes them, without those that pyspark brings in other versions; for all formats or these."""
    folder = Path(jars.classpath(JARS).partition(":")[0])
    ours = tuple(start for name, starts in OUR_JARS.items() if name in (formats or OUR_JARS) for start in starts)
    return tuple(str(path) for path in sorted(folder.glob("*.jar")) if path.name.startswith(ours))


@dataclass(frozen=True, kw_only=True)
class Lab:
    spark: SparkSession
    bootstrap: str
    folder: Path
    topic: str

    def send(self, *values: Value, topic: str | None = None, key: str | None = None, partition: int = 0) -> None:
        send(self.bootstrap, topic or self.topic, values, key=key, partition=partition)

    def pipeline(self, text: str, name: str = "p", source: str = "") -> Pipeline:
        """A pipeline over this topic; TEXT is the file without its [source], SOURCE what to add to that."""
        from ixion.pipelines import Pipeline

        head = f'name = "{name}"\n'
        rest = f'[source]\nbootstrap = "{self.bootstrap}"\n'
        if "topics =" not in source and "pattern =" not in source:
            rest += f'topics = ["{self.topic}"]\n'
        return Pipeline(read_spec(f"{head}{rest}{source}\n{text}", file=f"{name}.toml", folder=self.folder))

    def run(self, text: str, name: str = "p", source: str = "") -> RunFigures:
        return self.pipeline(text, name, source).run(self.spark)

    def rows(self, path: str = "out") -> list[dict[str, Any]]:
        return parquet_rows(self.folder / path)


def send(
    bootstrap: str, topic: str, values: Iterable[Value], *, key: str | None = None, partition: int = 0, **more: Any
) -> None:
    # Idempotent: a request that times out on a busy machine is sent again, and no record may be there twice.
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True, **more})
    for value in values:
        data = json.dumps(value) if isinstance(value, dict) else value
        producer.produce(topic, data, key, partition)
    assert producer.flush(PATIENCE_S) == 0, "the broker did not take all records"


def parquet_rows(folder: Path) -> list[dict[str, Any]]:
    """As a reader sees them that knows nothing of Spark; with the columns of all files."""
    import pyarrow
    import pyarrow.dataset

    if not folder.is_dir():
        return []
    data = pyarrow.dataset.dataset(folder, partitioning="hive")
    schemas = [fragment.physical_schema for fragment in data.get_fragments()]
    whole = pyarrow.unify_schemas([data.schema, *schemas], promote_options="permissive")
    found: list[dict[str, Any]] = (
        pyarrow.dataset.dataset(folder, schema=whole, partitioning="hive").to_table().to_pylist()
    )
    return found


def column(rows: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """Sorted, nulls first."""
    return sorted((row[name] for row in rows), key=lambda value: (value is not None, value))
