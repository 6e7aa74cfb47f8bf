"""A pipeline into Parquet, Delta and Iceberg whose parts are killed again and again: `make soak-lake`.

    python -m tests.pipelines.soak --kills 10 --seconds 240 --seed 1

A producer writes all the time to a real `ixion serve`; a real `ixion pipeline run --follow` carries the records through
a step in Python into three tables. At moments that the seed decides, one of four is killed with -9: the driver (its
Python process), its JVM, a Python worker of Spark, the broker. Whatever went is started again. At the end everything is
drained, and every table must hold each acknowledged record once and only once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ixion.pipelines import open_session
from tests.pipelines.ledger import Ledger
from tests.pipelines.processes import Served, run_command
from tests.pipelines.soak_parts import PARTITIONS, TOPIC, Driver, Load
from tests.pipelines.support import SMALL, parquet_rows, spark_jars

PIPELINE = """
[source]
bootstrap = "BOOTSTRAP"
topics = ["numbers"]
include = ["partition", "offset"]
max_records_per_batch = 5000
[format]
type = "json"
schema = "n INT, half INT"
[[steps]]
python = "through:step"
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
STEP = """
from pyspark.sql import functions as F


@F.udf("int")
def same(n):
    return n


def step(frame):
    return frame.withColumn("n", same("n"))
"""
AGAIN = 75  # the exit code that says: running it again can help
KINDS = ("driver", "jvm", "worker", "broker")
FIRST_BATCH_S = 120.0  # how long a Spark may take until its first batch is done


class Soak:
    def __init__(self, folder: Path, *, kills: int, seconds: float, seed: int, rate: float) -> None:
        self._kills = kills
        self._end = time.monotonic() + seconds
        self._chance = random.Random(seed)
        self._file = folder / "soak.toml"
        self.folder = folder
        self.ledger = Ledger()
        self.killed: Counter[str] = Counter()
        self.problems: list[str] = []
        self.broker = Served(folder / "data")
        topic = NewTopic(TOPIC, PARTITIONS, 1)
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})  # kept: with it goes what it has been asked
        admin.create_topics([topic])[TOPIC].result(20)
        (folder / "through.py").write_text(STEP)
        self._file.write_text(PIPELINE.replace("BOOTSTRAP", self.broker.bootstrap))
        self.load = Load(self.broker.bootstrap, self.ledger, rate)
        self.driver = Driver(self._file)

    def run(self) -> None:
        try:
            while self.killed.total() < self._kills and time.monotonic() < self._end:
                self._wait_for_a_moment()
                self._kill(self._chance.choice(KINDS))
        finally:
            self.driver.kill()
            self.load.stop()
        self._drain()
        self.broker.kill()

    def _wait_for_a_moment(self) -> None:
        """Mostly after its first batch in this life, somewhere in the next ones; sometimes while it is starting."""
        if self._chance.random() < 0.8:
            patience = time.monotonic() + FIRST_BATCH_S
            while not self.driver.batches and time.monotonic() < patience:
                if (code := self.driver.ended(0.05)) is not None:
                    self._start_again(code)
            time.sleep(self._chance.uniform(0, 2))
        else:
            time.sleep(self._chance.uniform(0, 8))

    def _kill(self, kind: str) -> None:
        if kind == "driver":
            self.driver.kill()
            self.driver.start()
        elif kind == "broker":
            self.broker.kill()
            time.sleep(self._chance.uniform(0, 1))
            self.broker.start()  # the driver goes on, or ends and says that running it again can help
        else:
            targets = self.driver.jvms() if kind == "jvm" else self.driver.workers()
            if not targets:
                return  # there is none yet
            os.kill(targets[-1], signal.SIGKILL)
            if (code := self.driver.ended(60 if kind == "jvm" else 2)) is not None:
                self._start_again(code)
        self.killed[kind] += 1
        print(f"{kind} killed; {len(self.ledger.told)} acknowledged, {self.driver.all_batches} batches", flush=True)

    def _start_again(self, code: int) -> None:
        if code != AGAIN:
            self.problems.append(f"the driver ended with {code}: {self.driver.last_words()}")
        self.driver.kill()
        self.driver.start()

    def _drain(self) -> None:
        for _ in range(5):
            done = subprocess.run(run_command(self._file, "--json"), capture_output=True, text=True, check=False)
            if done.returncode != AGAIN:
                break
        if done.returncode:
            self.problems.append(f"the last run ended with {done.returncode}: {done.stderr[-600:]}")
        elif lag := json.loads(done.stdout.splitlines()[-1])["summary"]["lag"]:
            self.problems.append(f"the last run left {lag} records behind")

    def judge(self) -> None:
        """Each table against the ledger; Parquet is read without Spark."""
        self.problems += self.ledger.failed
        if not self.ledger.told:
            self.problems.append("nothing was acknowledged at all")
        tables: dict[str, list[Any]] = {"parquet": parquet_rows(self.folder / "parquet")}
        session = open_session("soak", formats=("delta", "iceberg"), conf=SMALL, jars=spark_jars())
        for kind in ("delta", "iceberg"):
            table = session.read.format(kind).load(str(self.folder / kind))
            tables[kind] = [row.asDict() for row in table.collect()]
        session.stop()
        for kind, rows in tables.items():
            wrong = self.ledger.problems(rows)
            print(f"{kind}: {len(rows)} rows, {len(wrong)} problems", flush=True)
            self.problems += [f"{kind}: {problem}" for problem in wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=240, help="no kill after these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=100, help="records a second")
    parser.add_argument("--keep", type=Path, help="leave data and tables in this folder")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ixion-soak-lake-") as temporary:
        folder: Path = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        soak = Soak(folder, kills=given.kills, seconds=given.seconds, seed=given.seed, rate=given.rate)
        soak.run()
        soak.judge()
    kills = ", ".join(f"{soak.killed[kind]} {kind}" for kind in KINDS)
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s: {soak.killed.total()} kills ({kills})")
    print(f"{soak.driver.starts} drivers, {soak.driver.all_batches} batches, {len(soak.ledger.told)} acknowledged")
    for problem in soak.problems[:30]:
        print(f"  {problem}")
    print(f"{len(soak.problems)} problems")
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
