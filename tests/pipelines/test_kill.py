"""Real processes, really killed: afterwards each record is in each table once, none is missing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest

from devtools.parts import need_module
from ixion.cli.app import execute
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spark.session import close_session
from tests.pipelines.ledger import Ledger, record
from tests.pipelines.processes import Served, run_command
from tests.pipelines.support import PATIENCE_S, Lab, send
from tests.pipelines.three_tables import TOPIC, rows_of_tables, three_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def batches(process: subprocess.Popen[str]) -> Iterator[int]:
    """The number of each batch as it is reported."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"batch (\d+) ", line):
            yield int(found[1])


@pytest.mark.timeout(900)
def test_kill_9_of_the_broker_and_of_the_driver(served: Served, lab: Lab) -> None:
    """The broker in the first batch of a driver, the driver in a later one; then what is left is taken in."""
    from ixion.pipelines import Pipeline

    bootstrap, ledger = served.bootstrap, Ledger()
    file = lab.folder / "numbers.toml"
    file.write_text(three_tables(bootstrap, batch=100))

    def produce(first: int, count: int) -> None:
        send(bootstrap, TOPIC, [record(number) for number in range(first, first + count)])
        for number in range(first, first + count):
            ledger.acknowledged(0, number, number)

    def drive(restart_broker: bool) -> int:
        with subprocess.Popen(run_command(file), stdout=subprocess.PIPE, text=True) as driver:
            for _ in batches(driver):
                if restart_broker:
                    served.kill()
                    served.start()
                    restart_broker = False
                else:
                    driver.kill()  # somewhere in the next batch
                    break
        return driver.returncode

    produce(0, 400)
    code = drive(restart_broker=True)
    if code != -signal.SIGKILL:  # it did not outlive the broker, and says that running again helps
        assert code == 75
        assert drive(restart_broker=False) == -signal.SIGKILL
    produce(400, 50)
    figures = Pipeline.from_file(file).run(lab.spark)
    assert 50 <= figures.rows_in < 450
    assert figures.lag == 0
    for kind, rows in rows_of_tables(lab.folder, lab.spark).items():
        assert ledger.problems(rows) == [], kind


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

        @property
        def conf(self) -> None:
            self.stop()

    gone: Any = Gone()
    with pytest.raises(PipelineError, match="the JVM of Spark has gone") as caught:
        close_session(gone)
    assert caught.value.retry


ENDLESS = """
import time
from pyspark.sql import functions as F


@F.udf("int")
def endless(n):
    time.sleep(60)
    return n


def step(frame):
    return frame.withColumn("n", endless("n"))
"""


def test_ctrl_c_twice_gives_the_batch_up(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    from ixion.cli.pipeline.job import Job, run_job

    (lab.folder / "endless.py").write_text(ENDLESS)
    text = """
[format]
type = "json"
schema = "n INT"
[[steps]]
python = "endless:step"
[[sinks]]
type = "parquet"
path = "out"
"""
    lab.send(*({"n": n} for n in range(5)))
    job = Job(lab.folder / "p.toml", None, None, "", False)
    job.pipeline, job.spark = lab.pipeline(text), lab.spark
    shown: list[str] = []

    def press_twice() -> None:
        _until(lambda: any(lab.folder.glob(".out.staging/p/*/*/*")))  # the first batch is being written
        for words in ("finishing the batch", ""):
            os.kill(os.getpid(), signal.SIGINT)
            while words not in "".join(shown):
                shown.append(capsys.readouterr().err)

    presses = threading.Thread(target=press_twice)
    presses.start()
    stopped = run_job(job, follow=True, every_ms=None, again=False, as_json=False, metrics_port=None)
    presses.join()
    assert stopped
    assert "Traceback" not in "".join(shown) + capsys.readouterr().err
    assert lab.rows() == []


def _until(condition: Any, seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


@pytest.mark.timeout(900)
def test_the_commands_from_the_first_file_to_the_first_rows(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """init, check, run as a newcomer types them, in our Spark; the file is run as it is but for the port."""
    from ixion.pipelines.spark import session

    @contextmanager
    def ours(_: object) -> Iterator[SparkSession]:
        yield lab.spark

    monkeypatch.setattr(session, "opened", ours)
    file = lab.folder / "shop.toml"

    def ixion(name: str, *options: str) -> str:
        printed = StringIO()
        with redirect_stdout(printed):
            assert execute(["pipeline", name, str(file), *options]) == 0, printed.getvalue()
        return printed.getvalue()

    ixion("init")
    file.write_text(file.read_text().replace("localhost:9092", lab.bootstrap))
    assert "no partition yet" in ixion("check")
    assert "sent 300 events to shop" in ixion("sample", "--count", "300")
    said = ixion("run")
    found = re.search(r"1 batch · 300 rows in · (\d+) out · (\d+) quarantined", said)
    assert found, said
    rows, bad = lab.rows("lake/shop"), lab.rows("lake/shop_quarantine")
    assert (len(rows), len(bad)) == (int(found[1]), int(found[2]))
    assert len(rows) + len(bad) == 300
    assert "300 in" in ixion("status")
    assert json.loads(ixion("status", "--json"))["rows_in"] == 300
    assert 'ixion_pipeline_rows_in_total{pipeline="shop"} 300' in ixion("status", "--prometheus")
    assert "batch 0 · 300 rows in" in ixion("history")
