"""From the command to the first table: the example that `ixion pipeline init` writes, 1,000 orders into Parquet.

Each round is a new process with a new checkpoint and an empty table. With the archive of Spark's classes that `ixion
pipeline warm` makes, and without one. Elapsed time and processor time of all processes, part by part (see
`benchmarks.loads.first_table`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.broker_servers import ixion
from benchmarks.loads.first_table import PARTS
from benchmarks.pipelines import connector_jars, scratch
from ixion.pipelines.source.example_orders import order_events
from ixion.pipelines.spark.class_archive import FOLDER, OFF
from ixion.pipelines.spec.template import template

WARM, COLD = "with an archive", "without an archive"
LABELS = {"python": "Python and imports", "spark": "the JVM and the session", "plan": "the plan", "batch": "the batch"}
ORDERS = 1000
GOAL_S = 6.0


def send_orders(bootstrap: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    for event in order_events(ORDERS):
        producer.produce("orders", event.value, event.key)
    assert producer.flush(60) == 0


def measure(file: Path, archives: str) -> Mapping[str, float]:
    for name in ("lake", ".ixion"):
        shutil.rmtree(file.parent / name, ignore_errors=True)
    words = [sys.executable, "-m", "benchmarks.loads.first_table", str(file), ",".join(connector_jars())]
    environment = {**os.environ, FOLDER: archives}
    done = subprocess.run([*words, str(time.time())], env=environment, check=True, capture_output=True, text=True)
    found: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def contenders(session: Session) -> Mapping[str, Contender]:
    folder, server = session.enter(scratch()), session.enter(ixion())
    fresh(clients.first_ack, server.bootstrap)
    fresh(clients.create_topics, server.bootstrap, {"orders": 1})
    fresh(send_orders, server.bootstrap)
    file, archives = folder / "orders.toml", folder / "archives"
    file.write_text(template("orders").replace("localhost:9092", server.bootstrap))
    warm = [sys.executable, "-m", "ixion", "pipeline", "warm", str(file), "--jars", ",".join(connector_jars())]
    subprocess.run(warm, env={**os.environ, FOLDER: str(archives)}, check=True, capture_output=True)
    return {WARM: partial(measure, file, str(archives)), COLD: partial(measure, file, OFF)}


BENCHMARK = Benchmark(
    name="first_table",
    title="From the command to the first table",
    rows=(
        Row(key="all", label="to the first table", unit="s"),
        Row(key="all-cpu", label="processor time until then", unit="s"),
        *(Row(key=part, label=LABELS[part], unit="s", charted=False) for part in PARTS),
        *(Row(key=f"{part}-cpu", label=f"{LABELS[part]}, processor time", unit="s", charted=False) for part in PARTS),
    ),
    goals=(Goal(label=f"the first table within {GOAL_S:g} s", value=("all", WARM), base=GOAL_S, at_most=1.0),),
    baseline=COLD,
    contenders=contenders,
    rounds=5,
)
