"""Checks what a version of Spark needs to run of ours: the data source, and a pipeline that needs no connector.

    python -m tests.pipelines.on_version [VERSION ...]

Each version is installed by its name into a folder of the cache, beside the pyspark of the tests, and checked in a
process of its own. Ends with 1 if one fails. `check` is what that process runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from devtools.cache import made_once
from ixion.pipelines.declarative import project
from ixion.pipelines.spec import load_spec
from ixion.testing import Broker
from tests.pipelines.support import SMALL, parquet_rows, send
from tests.spark_source.sinking import committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What Spark Connect imports, and with it declarative pipelines.
CONNECT: Final = ("pandas", "grpcio", "grpcio-status", "googleapis-common-protos", "zstandard", "pyyaml")
VERSIONS: Final = ("4.0.0", "4.3.0")  # the lowest and the highest
PIPELINE: Final = """
name = "p"
checkpoint = "checkpoint"
[source]
bootstrap = "{bootstrap}"
topics = ["in"]
reader = "ixion"
{limit}
[format]
type = "json"
schema = "n INT"
[[expectations]]
name = "not seven"
check = "n <> 7"
otherwise = "quarantine"
[[steps]]
sql = "SELECT n, n * 2 AS twice FROM stream"
[[sinks]]
type = "parquet"
path = "out"
[[sinks]]
type = "topic"
topic = "clean"
key = "n"
exactly_once = true
"""

DECLARATIVE: Final = """
name = "shop"
[source]
bootstrap = "{bootstrap}"
topics = ["in"]
include = ["partition"]
[format]
type = "json"
schema = "n INT"
[[expectations]]
name = "not seven"
check = "n <> 7"
otherwise = "quarantine"
[[expectations]]
name = "not nine"
check = "n <> 9"
otherwise = "drop"
[[steps]]
sql = "SELECT n, n * 2 AS twice, n % 2 AS half FROM stream"
[[sinks]]
type = "parquet"
path = "lake/shop"
partition_by = ["half"]
[[sinks]]
type = "topic"
topic = "clean"
key = "n"
exactly_once = true
"""


def installed(version: str) -> Path:
    def install(place: Path) -> None:
        words = ["-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--target", str(place)]
        subprocess.run([sys.executable, *words, f"pyspark=={version}", "py4j"], check=True)

    return made_once("spark", version, install)


def check_apart(version: str) -> int:
    """Check VERSION in a process that finds it before the pyspark of the tests."""
    path = os.pathsep.join((str(installed(version)), *filter(None, (os.environ.get("PYTHONPATH"),))))
    ended = subprocess.run(
        [sys.executable, "-m", "tests.pipelines.on_version", "--here", version], env={**os.environ, "PYTHONPATH": path}
    )
    if ended.returncode == 0 and line_of(version) >= (4, 1):
        check_declarative(version)
    return ended.returncode


def line_of(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def installed_connect() -> Path:
    """What declarative pipelines need beside pyspark."""

    def install(place: Path) -> None:
        words = ["-m", "pip", "install", "--quiet", "--no-compile", "--target", str(place), *CONNECT]
        subprocess.run([sys.executable, *words], check=True)

    return made_once("spark", "connect", install)


def check_declarative(version: str) -> None:
    """Run the project that `export --sdp` writes, twice, with a record more the second time."""
    spark = installed(version)
    paths = (str(spark), *filter(None, (os.environ.get("PYTHONPATH"),)), str(installed_connect()))
    environment = {
        "PYTHONPATH": os.pathsep.join(paths),
        "SPARK_HOME": str(spark / "pyspark"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    with Broker() as broker, tempfile.TemporaryDirectory() as place:
        for topic in ("in", "clean"):
            broker.create_topic(topic, partitions=2)
        send(broker.bootstrap, "in", [*({"n": n} for n in range(20)), "broken"])
        file = Path(place, "shop.toml")
        file.write_text(DECLARATIVE.format(bootstrap=broker.bootstrap))
        for name, text in project(load_spec(file), Path(place)).items():
            Path(place, name).parent.mkdir(exist_ok=True)
            Path(place, name).write_text(text)
        for number in (20, 21):
            send(broker.bootstrap, "in", [{"n": number}])
            words = [str(spark / "pyspark" / "bin" / "spark-pipelines"), "run", "--spec", f"{place}/spark-pipeline.yml"]
            subprocess.run(words, env={**os.environ, **environment}, cwd=place, check=True, timeout=300)
        expected = [{"n": n, "twice": 2 * n, "half": n % 2} for n in range(22) if n not in (7, 9)]
        assert sorted(map(json.loads, committed(broker.bootstrap, "clean")), key=lambda row: row["n"]) == expected
        tables = Path(place, "spark-warehouse")
        assert sorted(parquet_rows(tables / "shop"), key=lambda row: row["n"]) == expected
        assert {row["reason"] for row in parquet_rows(tables / "shop_quarantine")} == {
            "not a JSON object of this schema",
            "expectation not met: not seven",
        }
    print(f"Spark {version}: a declarative pipeline reads and writes topics", flush=True)


def check(version: str) -> None:
    import pyspark

    from ixion.pipelines import Pipeline, open_session

    assert pyspark.__version__ == version
    with Broker() as broker, tempfile.TemporaryDirectory() as place:
        for topic in ("in", "copy", "clean"):
            broker.create_topic(topic, partitions=2)
        send(broker.bootstrap, "in", [{"n": n} for n in range(30)])
        send(broker.bootstrap, "in", [{"n": n} for n in range(30, 40)], partition=1)
        spark = open_session("version", conf=SMALL, connector=False)
        try:
            check_stream(spark, broker.bootstrap, Path(place))
            can_limit = line_of(version) >= (4, 2)
            file = Path(place, "p.toml")
            text = PIPELINE.format(bootstrap=broker.bootstrap, limit="max_records_per_batch = 16" if can_limit else "")
            file.write_text(text)
            figures = Pipeline.from_file(file).run(spark)
            assert (figures.rows_in, figures.rows_out, figures.quarantined) == (40, 39, 1), figures
            assert figures.batches == (3 if can_limit else 1), figures
            send(broker.bootstrap, "in", [{"n": 40}])
            assert Pipeline.from_file(file).run(spark).rows_in == 1
        finally:
            spark.stop()
        expected = [{"n": n, "twice": 2 * n} for n in range(41) if n != 7]
        assert sorted(parquet_rows(Path(place, "out")), key=lambda row: row["n"]) == expected
        assert sorted(map(json.loads, committed(broker.bootstrap, "clean")), key=lambda row: row["n"]) == expected
    print(f"Spark {version}: read, written, limited: {'yes' if can_limit else 'no'}", flush=True)


def check_stream(spark: SparkSession, bootstrap: str, folder: Path) -> None:
    """Read and write, and write the last batch again."""
    given = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.read.format("ixion").options(**given, subscribe="in").load()
    assert rows.count() == 40
    for _ in range(2):
        stream = spark.readStream.format("ixion").options(**given, subscribe="in", startingOffsets="earliest").load()
        writer = stream.select("key", "value").writeStream.format("ixion").options(**given, topic="copy")
        query = writer.option("checkpointLocation", str(folder / "c")).trigger(availableNow=True).start()
        assert query.awaitTermination(240)
        for path in (folder / "c" / "commits").iterdir():
            path.unlink()
    assert len(committed(bootstrap, "copy")) == 40


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        check(sys.argv[2])
    else:
        sys.exit(max(map(check_apart, sys.argv[1:] or VERSIONS)))
