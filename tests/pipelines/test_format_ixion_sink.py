"""`format("ixion")` writes: another topic exactly once, also if a driver is killed before Spark notes the batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from ixion.testing import Broker
from tests.pipelines.processes import descendants
from tests.pipelines.support import PATIENCE_S, SMALL, Lab, spark_jars
from tests.spark_source.sinking import committed

# A query as a user writes it: in the tests' Spark, and in a process of its own that is killed.
QUERY = """
def start(spark, bootstrap, topic, folder):
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    rows = spark.readStream.format("kafka").options(**given, maxOffsetsPerTrigger="20").load()
    writer = rows.select("key", "value").writeStream.format("ixion")
    writer = writer.options(**{"kafka.bootstrap.servers": bootstrap, "topic": f"{topic}-copy"})
    return writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
"""
DRIVER = """
import sys
from pyspark.sql import SparkSession

bootstrap, topic, folder, jars, *conf = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
for pair in conf:
    builder = builder.config(*pair.split("=", 1))
start(builder.getOrCreate(), bootstrap, topic, folder).awaitTermination()
"""


def copy(lab: Lab) -> None:
    """Runs the query to the end of its topic."""
    names: dict[str, Any] = {}
    exec(QUERY, names)
    query = names["start"](lab.spark, lab.bootstrap, lab.topic, lab.folder)
    assert query.awaitTermination(PATIENCE_S)


def forget_last_batch(lab: Lab) -> str:
    """As if the driver had been killed just before Spark noted the batch."""
    commits = lab.folder / "checkpoint" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    last.unlink()
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    return last.name


@pytest.fixture
def copied(lab: Lab, broker: Broker) -> str:
    broker.create_topic(f"{lab.topic}-copy", partitions=3)
    return f"{lab.topic}-copy"


def test_a_stream_writes_each_batch_once(lab: Lab, copied: str) -> None:
    lab.send(*(f"{number:03}" for number in range(50)))
    copy(lab)
    assert forget_last_batch(lab) == "2"
    copy(lab)
    lab.send("last")
    copy(lab)
    assert committed(lab.bootstrap, copied) == [*(f"{number:03}" for number in range(50)), "last"]


def test_a_query_that_was_set_back_is_refused(lab: Lab, copied: str) -> None:
    """The offsets of the last batch are gone, too: Spark plans a longer one under its number."""
    lab.send(*(f"{number:03}" for number in range(25)))
    copy(lab)
    last = forget_last_batch(lab)
    for name in (last, f".{last}.crc"):
        (lab.folder / "checkpoint" / "offsets" / name).unlink(missing_ok=True)
    lab.send("more")
    with pytest.raises(Exception, match="is in the topic with 5 records, and has 6 others now"):
        copy(lab)
    assert committed(lab.bootstrap, copied) == [f"{number:03}" for number in range(25)]


@pytest.mark.timeout(900)
def test_kill_9_of_the_driver(lab: Lab, copied: str) -> None:
    values = [f"{number:04}" for number in range(400)]
    lab.send(*values)
    script = lab.folder / "driver.py"
    script.write_text(QUERY + DRIVER)
    words = [lab.bootstrap, lab.topic, str(lab.folder), ",".join(spark_jars("kafka"))]
    words += [f"{name}={value}" for name, value in SMALL.items()]
    with subprocess.Popen([sys.executable, str(script), *words], stderr=subprocess.DEVNULL) as driver:
        until_s = time.monotonic() + PATIENCE_S
        while driver.poll() is None and len(committed(lab.bootstrap, copied)) < 40:
            assert time.monotonic() < until_s
            time.sleep(0.02)
        for process in (*descendants(driver.pid), driver.pid):  # the JVM first, somewhere in a batch
            os.kill(process, signal.SIGKILL)
    assert len(committed(lab.bootstrap, copied)) < 400
    copy(lab)
    assert committed(lab.bootstrap, copied) == values


def test_a_frame_is_written_whole_or_not_at_all(lab: Lab, copied: str) -> None:
    spark = lab.spark

    def write(frame: Any, **options: str) -> None:
        given = {"kafka.bootstrap.servers": lab.bootstrap, "topic": copied, **options}
        frame.write.format("ixion").options(**given).mode("append").save()

    rows = spark.range(0, 3000, 1, 3).selectExpr(
        "CAST(id AS STRING) AS key", "repeat(CAST(id AS STRING), 300) AS value"
    )
    with pytest.raises(Exception, match="not this one"):
        write(rows.selectExpr("key", "IF(key = '2999', raise_error('not this one'), value) AS value"))
    assert committed(lab.bootstrap, copied) == []
    write(rows)
    whole = sorted(str(number) * 300 for number in range(3000))
    assert committed(lab.bootstrap, copied) == whole
    for _ in range(2):
        write(spark.sql("SELECT 'once' AS value"), txnAppId="nightly", txnVersion="0")
    assert committed(lab.bootstrap, copied) == sorted([*whole, "once"])
    write(spark.sql("SELECT 'plain' AS value"), delivery="at-least-once")
    assert committed(lab.bootstrap, copied) == sorted([*whole, "once", "plain"])


def test_mistakes_are_named(lab: Lab, copied: str) -> None:
    given = {"kafka.bootstrap.servers": lab.bootstrap, "topic": copied}
    wrong = {
        "there is no column value": lab.spark.sql("SELECT 1 AS id").write.options(**given),
        "has no option topics; did you mean topic": lab.spark.sql("SELECT 'a' AS value").write.options(
            **given, topics="a"
        ),
    }
    for said, writer in wrong.items():
        with pytest.raises(Exception, match=said):
            writer.format("ixion").mode("append").save()
    with pytest.raises(Exception, match="a topic cannot be overwritten; use mode append"):
        lab.spark.sql("SELECT 'a' AS value").write.format("ixion").options(**given).mode("overwrite").save()
    assert committed(lab.bootstrap, copied) == []
