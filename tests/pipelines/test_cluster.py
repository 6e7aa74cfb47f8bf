"""A pipeline submitted to a Spark standalone cluster: a master, and a worker with two executors, in processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from devtools.jvm import QUICK
from devtools.kafka import free_port
from ixion.testing import Broker
from tests.pipelines.support import PATIENCE_S, SMALL, parquet_rows, send, spark_jars

STEP = """
from cluster_parts import folders
from pyspark.sql import functions as F


@F.udf("string")
def executor_folder(n):
    return folders.here()


def step(frame):
    return frame.withColumn("ran_in", executor_folder("n"))
"""


@contextmanager
def spark_process(name: str, *arguments: str, output: Path) -> Iterator[Callable[[str], None]]:
    """A function that waits until the process has logged what a pattern matches."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": " ".join(QUICK),
    }
    with output.open("wb") as log:
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def wait_for(said: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not re.search(said, output.read_text()):
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < end, output.read_text()
            time.sleep(0.1)

    try:
        yield wait_for
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def master(spark_parts: None, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        place = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        log = tmp_path / "master.log"
        stack.enter_context(spark_process("master.Master", *place, output=log))("New state: ALIVE")
        words = ("--host", "127.0.0.1", "--cores", "2", "--memory", "1400m", "--webui-port", "0")
        work = ("--work-dir", str(tmp_path / "work"), url)
        worker = spark_process("worker.Worker", *words, *work, output=tmp_path / "worker.log")
        stack.enter_context(worker)("Successfully registered")
        yield url


@pytest.mark.timeout(900)
def test_a_pipeline_on_a_cluster(master: str, broker: Broker, tmp_path: Path) -> None:
    broker.create_topic("cluster", partitions=2)
    for partition in range(2):
        send(broker.bootstrap, "cluster", [{"n": n} for n in range(partition, 400, 2)], partition=partition)
    (tmp_path / "cluster_step.py").write_text(STEP)
    (tmp_path / "cluster_parts").mkdir()
    (tmp_path / "cluster_parts" / "__init__.py").touch()
    (tmp_path / "cluster_parts" / "folders.py").write_text("import os\n\n\ndef here():\n    return os.getcwd()\n")
    file = tmp_path / "cluster.toml"
    file.write_text(f"""
[source]
bootstrap = "{broker.bootstrap}"
topics = ["cluster"]
[format]
type = "json"
schema = "n INT"
[[steps]]
python = "cluster_step:step"
[[sinks]]
type = "parquet"
path = "out"
""")
    settings = {
        **SMALL,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": " ".join(QUICK),
        "spark.ui.enabled": "false",
        "spark.locality.wait": "0",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "ixion", "pipeline", "run", str(file), "--master", master]
    command += ["--jars", ",".join(spark_jars("kafka")), *conf]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    rows = parquet_rows(tmp_path / "out")
    assert sorted(row["n"] for row in rows) == list(range(400))
    executors = {str(Path(row["ran_in"]).relative_to(tmp_path / "work")).rpartition("/")[2] for row in rows}
    assert executors == {"0", "1"}
