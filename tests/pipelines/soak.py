"""A pipeline into Parquet, Delta and Iceberg whose parts are killed again and again: `make soak-lake`.

    python -m tests.pipelines.soak --kills 40 --seconds 480 --seed 1

A producer writes all the time to a real `ixion serve`; a real `ixion pipeline run --follow` carries the records through
a step in Python into three tables, in small batches. After a few of them, at moments that the seed decides, one thing
happens:

    driver     its Python process is killed; the next one begins while the JVM of the old one still lives
    jvm        its JVM is killed
    worker     a Python worker of Spark is killed
    broker     the broker is killed
    stop       Ctrl-C: it finishes its batch, joins small files, removes old versions, and must end well
    back       the same when the broker was killed and has just come back
    upkeep     Ctrl-C, and it is killed while it does so

Whatever went is started again. Meanwhile the folder of Parquet files is read again and again, as a stranger reads it:
no row may ever be there twice. At the end everything is drained, and every table must hold each acknowledged record
once and only once.
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

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ixion.pipelines import open_session
from tests.pipelines.ledger import Ledger
from tests.pipelines.processes import Served, run_command
from tests.pipelines.soak_parts import PARTITIONS, Driver, Load, Reader
from tests.pipelines.support import SMALL, spark_jars
from tests.pipelines.three_tables import TOPIC, rows_of_tables, three_tables

STEP = """
from pyspark.sql import functions as F


@F.udf("int")
def same(n):
    return n


def step(frame):
    return frame.withColumn("n", same("n"))
"""
AGAIN = 75  # the exit code that says: running it again can help
KINDS = {"driver": 3, "jvm": 1, "worker": 1, "broker": 2, "stop": 1, "back": 2, "upkeep": 2}  # with their weights
BATCH = 300  # records, so that what came while a driver was starting makes several batches
MOST_BATCHES = 5  # of one life, before something happens
PATIENCE_S = 240.0  # until a batch is done, or an end that was asked for has come


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
        steps, upkeep = '[[steps]]\npython = "through:step"\n', "compact_below_mb = 1"
        text = three_tables(self.broker.bootstrap, batch=BATCH, steps=steps, upkeep=upkeep, keep='keep = "1 ms"')
        self._file.write_text(text)
        self.load = Load(self.broker.bootstrap, self.ledger, rate)
        self.reader = Reader(folder / "parquet")
        self.driver = Driver(self._file)

    def run(self) -> None:
        try:
            try:
                while self.killed.total() < self._kills and time.monotonic() < self._end:
                    self._wait_for_a_moment()
                    (kind,) = self._chance.choices([*KINDS], [*KINDS.values()])
                    self._happen(kind)
            finally:
                self.driver.kill()
                self.load.stop()
            self._drain()
        finally:
            self.broker.kill()
            self.problems += self.reader.stop()

    def _wait_for_a_moment(self) -> None:
        """Mostly somewhere in a batch after some others in this life; sometimes while it is starting."""
        if self._chance.random() < 0.15:
            time.sleep(self._chance.uniform(0, 6))
            return
        wanted = self._chance.randint(1, MOST_BATCHES)
        patience = time.monotonic() + PATIENCE_S
        while self.driver.batches < wanted and time.monotonic() < patience:
            if (code := self.driver.ended(0.02)) is not None:
                self._start_again(code)
        time.sleep(self._chance.uniform(0, 1))

    def _happen(self, kind: str) -> None:
        batches = self.driver.batches
        if kind == "driver":
            self.driver.kill(wait_for_jvm=False)
            self.driver.start()
        elif kind == "broker":
            self._restart_broker()
        elif kind in ("stop", "back", "upkeep"):
            if not batches:
                return  # before there is a query, Ctrl-C just ends the command
            if kind == "back":
                self._restart_broker()
            self._stop(kill_after_s=self._chance.uniform(0, 6) if kind == "upkeep" else None)
        else:
            targets = self.driver.jvms() if kind == "jvm" else self.driver.workers()
            if not targets:
                return  # there is none yet
            os.kill(targets[-1], signal.SIGKILL)
            if (code := self.driver.ended(60 if kind == "jvm" else 1)) is not None:
                self._start_again(code)
        self.killed[kind] += 1
        told = f"{len(self.ledger.told)} acknowledged, {self.driver.all_batches} batches, {self.reader.times} reads"
        print(f"{kind} in batch {batches} of its life; {told}", flush=True)

    def _restart_broker(self) -> None:
        """The driver goes on, or ends and says that running it again can help."""
        self.broker.kill()
        time.sleep(self._chance.uniform(0, 1))
        self.broker.start()

    def _stop(self, kill_after_s: float | None) -> None:
        """By one Ctrl-C: a second one gives the batch up. If the broker has just gone, the last batch may fail."""
        self.driver.process.send_signal(signal.SIGINT)
        code = self.driver.ended(PATIENCE_S if kill_after_s is None else kill_after_s)
        if kill_after_s is None and code not in (0, AGAIN):
            self.problems.append(f"after Ctrl-C the driver ended with {code}: {self.driver.last_words()}")
        print(f"after Ctrl-C: {'not ended' if code is None else f'ended with {code}'}", flush=True)
        self.driver.kill()
        self.driver.start()

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
        session = open_session("soak", formats=("delta", "iceberg"), conf=SMALL, jars=spark_jars())
        tables = rows_of_tables(self.folder, session)
        session.stop()
        for kind, rows in tables.items():
            wrong = self.ledger.problems(rows)
            print(f"{kind}: {len(rows)} rows, {len(wrong)} problems", flush=True)
            self.problems += [f"{kind}: {problem}" for problem in wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=480, help="no kill after these")
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
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s: {soak.killed.total()} ends ({kills})")
    print(f"{soak.reader.times} reads of Parquet meanwhile, {soak.reader.overtaken} more were overtaken by upkeep")
    print(f"{soak.driver.starts} drivers, {soak.driver.all_batches} batches, {len(soak.ledger.told)} acknowledged")
    for problem in soak.problems[:30]:
        print(f"  {problem}")
    print(f"{len(soak.problems)} problems")
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
