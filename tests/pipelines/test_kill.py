"""Real processes, really killed: afterwards each record is in each table once, none is missing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devtools.parts import need_module
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.session import close_session
from tests.pipelines.processes import Served, command, run_command
from tests.pipelines.support import SMALL, Lab, parquet_rows, send, spark_jars

PIPELINE = """
[source]
bootstrap = "BOOTSTRAP"
topics = ["numbers"]
create_missing = true
include = ["partition", "offset"]
max_records_per_batch = 100
[format]
type = "json"
schema = "n INT, half INT"
[[sinks]]
type = "parquet"
path = "parquet"
partition_by = ["half"]
[[sinks]]
type = "delta"
path = "delta"
[[sinks]]
type = "iceberg"
path = "iceberg"
"""


@pytest.fixture
def served(spark_parts: None, tmp_path: Path) -> Iterator[Served]:
    broker = Served(tmp_path / "data")
    yield broker
    broker.kill()


def batches(process: subprocess.Popen[str]) -> Iterator[int]:
    """The number of each batch as it is reported."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"batch (\d+) ", line):
            yield int(found[1])


@pytest.mark.timeout(400)  # three runs of a Spark of their own, with three tables each
def test_kill_9_of_the_driver_and_of_the_broker(served: Served, lab: Lab) -> None:
    bootstrap = served.bootstrap
    file = lab.folder / "numbers.toml"
    file.write_text(PIPELINE.replace("BOOTSTRAP", bootstrap))

    def produce(first: int, count: int) -> None:
        send(bootstrap, "numbers", [{"n": n, "half": n % 2} for n in range(first, first + count)], partition=-1)

    produce(0, 400)
    with subprocess.Popen(run_command(file), stdout=subprocess.PIPE, text=True) as driver:
        for number in batches(driver):
            if number == 1:
                driver.kill()  # somewhere in batch 2
                break
    with subprocess.Popen(run_command(file), stdout=subprocess.PIPE, text=True) as driver:
        killed = False
        for _ in batches(driver):
            if not killed:
                served.kill()
                served.start()
                killed = True
    assert driver.returncode in (0, 75)  # it went on, or says that running again helps
    produce(400, 50)
    done = subprocess.run(run_command(file, "--json"), capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["lag"] == 0

    expected = list(range(450))
    tables: dict[str, list[dict[str, Any]]] = {"parquet": parquet_rows(lab.folder / "parquet")}
    for kind in ("delta", "iceberg"):
        tables[kind] = [row.asDict() for row in lab.spark.read.format(kind).load(str(lab.folder / kind)).collect()]
    for kind, rows in tables.items():
        assert sorted(row["n"] for row in rows) == expected, kind
        assert sorted((row["kafka_partition"], row["kafka_offset"]) for row in rows) == [(0, n) for n in expected], kind
        assert all(row["half"] == row["n"] % 2 for row in rows), kind


def test_a_python_worker_that_dies_is_named_and_nothing_is_lost(lab: Lab) -> None:
    marker = lab.folder / "died"
    (lab.folder / "deadly.py").write_text(
        "import os\nfrom pyspark.sql import functions as F\n\n\n"
        "@F.udf('int')\n"
        "def once_only(n):\n"
        f"    if n == 7 and not os.path.exists({str(marker)!r}):\n"
        f"        open({str(marker)!r}, 'w').close()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return n\n\n\n"
        "def step(frame):\n"
        "    return frame.withColumn('n', once_only('n'))\n"
    )
    text = """
[format]
type = "json"
schema = "n INT"
[[steps]]
python = "deadly:step"
[[sinks]]
type = "parquet"
path = "out"
"""
    lab.send(*({"n": n} for n in range(20)))
    with pytest.raises(PipelineError, match="a Python worker died") as caught:
        lab.run(text)
    assert caught.value.retry
    lab.run(text)
    assert sorted(row["n"] for row in lab.rows()) == list(range(20))


@pytest.mark.parametrize("kind", ["refused", "cut off"])
def test_a_jvm_that_was_killed_is_named(kind: str) -> None:
    need_module("py4j")
    from py4j import protocol

    class Gone:
        def stop(self) -> None:
            raise ConnectionRefusedError if kind == "refused" else protocol.Py4JNetworkError("the answer is empty")

    gone: Any = Gone()
    with pytest.raises(PipelineError, match="the JVM of Spark has gone") as caught:
        close_session(gone)
    assert caught.value.retry


SLOW = """
import os, time
from pyspark.sql import functions as F


@F.udf("int")
def slow(n):
    time.sleep(PAUSE)
    return n


def step(frame):
    return frame.withColumn("n", slow("n"))
"""


@pytest.mark.parametrize(("interrupts", "code", "rows"), [(1, 0, 5), (2, 130, 0)], ids=["once", "twice"])
def test_ctrl_c(lab: Lab, interrupts: int, code: int, rows: int) -> None:
    """Once, the batch is finished and no other begun; twice, the batch is given up."""
    (lab.folder / "slow.py").write_text(SLOW.replace("PAUSE", "0.5" if interrupts == 1 else "60"))
    text = f"""
[source]
bootstrap = "{lab.bootstrap}"
topics = ["{lab.topic}"]
max_records_per_batch = 5
[format]
type = "json"
schema = "n INT"
[[steps]]
python = "slow:step"
[[sinks]]
type = "parquet"
path = "out"
"""
    file = lab.folder / "p.toml"
    file.write_text(text)
    lab.send(*({"n": n} for n in range(50)))
    words = run_command(file, "--follow", formats=("kafka",))
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        _until(lambda: any((lab.folder / ".ixion/p/offsets").glob("[0-9]*")))
        _until(lambda: any(lab.folder.glob(".out.staging/p/*/*/*")))  # the first batch is being written
        driver.send_signal(signal.SIGINT)
        assert driver.stderr is not None
        assert "finishing the batch" in driver.stderr.readline()
        if interrupts == 2:
            driver.send_signal(signal.SIGINT)
        out, err = driver.communicate(timeout=100)
    assert driver.returncode == code, out + err
    assert "Traceback" not in out + err
    assert len(lab.rows()) == rows


def _until(condition: Any, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


@pytest.mark.timeout(400)
def test_the_commands_from_the_first_file_to_the_first_rows(served: Served, tmp_path: Path) -> None:
    """init, check, run as a newcomer types them; the file is run as it is but for the port."""
    environment = {**os.environ, "COLUMNS": "200"}
    conf = [word for name, value in SMALL.items() for word in ("--conf", f"{name}={value}")]
    conf += ["--jars", ",".join(spark_jars("kafka"))]

    def ixion(*words: str) -> str:
        name, *options = words
        line = command("pipeline", name, str(file), *options)
        done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    file = tmp_path / "orders.toml"
    ixion("init")
    file.write_text(file.read_text().replace("localhost:9092", served.bootstrap))
    assert "no partition yet" in ixion("check", *conf)
    assert "sent 300 events to orders" in ixion("sample", "--count", "300", *conf)
    said = ixion("run", *conf)
    found = re.search(r"1 batch · 300 rows in · (\d+) out · (\d+) quarantined", said)
    assert found, said
    rows, bad = parquet_rows(tmp_path / "lake/orders"), parquet_rows(tmp_path / "lake/orders_quarantine")
    assert (len(rows), len(bad)) == (int(found[1]), int(found[2]))
    assert len(rows) + len(bad) == 300
    assert "300 in" in ixion("status")
    assert json.loads(ixion("status", "--json"))["rows_in"] == 300
    assert 'ixion_pipeline_rows_in_total{pipeline="orders"} 300' in ixion("status", "--prometheus")
    assert "batch 0 · 300 rows in" in ixion("history")
