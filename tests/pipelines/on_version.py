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
from ixion.testing import Broker
from tests.pipelines.support import SMALL, parquet_rows, send
from tests.spark_source.sinking import committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    return ended.returncode


def line_of(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


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
