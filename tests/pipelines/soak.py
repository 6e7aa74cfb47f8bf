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
    column     from now on the records have one field more; all tables get a column
    stranger   another Spark joins files of the tables and expires all snapshots but the last
    clock      the wall clock of driver and JVM jumps, by up to an hour, forward or back
    anew       the topic is deleted and recreated; the pipeline must refuse it, and go on as its hint says

One expectation looks at the clock: some records are in the tables or in the quarantine by the second at which they
were judged. Whatever went is started again. Meanwhile the folder of Parquet files is read again and again, as a
stranger reads it: no row may ever be there twice. At the end everything is drained, and every table must hold each
acknowledged record once and only once, or the quarantine in its place.

The last line is a verdict: right, wrong or open (exit codes 0, 1, 2). It is open if something took longer than
`--patience`, as on a busy machine, or if the soak was interrupted (Ctrl-C, SIGTERM). The tables are then judged as they
are: a row that is wrong, or there twice, is wrong all the same. It takes at most SECONDS, two or three times PATIENCE
for what has begun and for the last run, and a minute for the judge.
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
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ixion.pipelines import open_session
from tests.pipelines.ledger import Ledger, verdict
from tests.pipelines.processes import Served, run_command
from tests.pipelines.soak_faults import Clock, look_after_as_a_stranger
from tests.pipelines.soak_parts import PARTITIONS, Driver, Load, Reader
from tests.pipelines.support import SMALL, parquet_rows, spark_jars
from tests.pipelines.three_tables import TOPIC, quarantined_rows, rows_of_tables, three_tables

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
KINDS |= {"column": 1, "stranger": 2, "clock": 2, "anew": 1}
MOST_COLUMNS = 6
JUMPS = (-3600, -90, -30, 0, 20)  # seconds; a table that has a snapshot of the future takes none of now
REFUSED = -60  # by Iceberg, if the clock is set back by more
DRIFT = '[format.drift]\nnew = "add"\n'
BY_THE_CLOCK = """
[[expectations]]
name = "first half of a second"
check = "n % 10 <> 0 OR extract(SECOND FROM current_timestamp()) % 1 < 0.5"
otherwise = "quarantine"
"""
BATCH = 300  # records, so that what came while a driver was starting makes several batches
MOST_BATCHES = 5  # of one life, before something happens
PATIENCE_S = 120.0  # until a batch is done, or an end that was asked for has come
DRAINS = 5  # attempts of the last run; each may end with the code AGAIN


class Soak:
    def __init__(
        self,
        folder: Path,
        *,
        kills: int,
        seconds: float,
        seed: int,
        rate: float,
        kinds: Sequence[str],
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._kinds = kinds
        self._patience_s = patience_s
        self._began = time.monotonic()
        self._kills = kills
        self._end = time.monotonic() + seconds
        self._chance = random.Random(seed)
        self._file = folder / "soak.toml"
        self.folder = folder
        self.ledger = Ledger()
        self.killed: Counter[str] = Counter()
        self.problems: list[str] = []
        self.unsettled: list[str] = []  # what was not waited for
        self._drained = False
        self.broker = Served(folder / "data")
        self._admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        self._create_topic()
        (folder / "through.py").write_text(STEP)
        steps, upkeep = f'{BY_THE_CLOCK}[[steps]]\npython = "through:step"\n', "compact_below_mb = 1"
        keep = 'keep = "1 ms"'
        text = three_tables(self.broker.bootstrap, batch=BATCH, steps=steps, upkeep=upkeep, keep=keep, more=DRIFT)
        self._file.write_text(text)
        self.clock = Clock(folder)
        self._spark = open_session("stranger", formats=("delta", "iceberg"), conf=SMALL, jars=spark_jars())
        self.load = Load(self.broker.bootstrap, self.ledger, rate)
        self.reader = Reader(folder / "parquet")
        self.driver = Driver(self._file, self.clock.environment)

    def run(self) -> None:
        try:
            try:
                while self.killed.total() < self._kills and time.monotonic() < self._end:
                    self._wait_for_a_moment()
                    (kind,) = self._chance.choices(self._kinds, [KINDS[kind] for kind in self._kinds])
                    self._happen(kind)
            except KeyboardInterrupt:
                self._leave("it was interrupted")
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
        patience = time.monotonic() + self._patience_s
        while self.driver.batches < wanted and time.monotonic() < self._end:
            if time.monotonic() > patience:
                self._leave(f"{wanted} batches did not come")
                break
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
        elif kind == "column":
            if len(self.ledger.columns) == MOST_COLUMNS:
                return
            self.load.add_column()
        elif kind == "clock":
            jump = self._chance.choice(JUMPS)
            self._say(f"the clock shows {jump:+} s")
            self.clock.jump(jump)
            if jump < REFUSED:
                self._wait_for_refusal(AGAIN, "the clock shows an earlier time")
                self.clock.jump(0)
                self.driver.start()
        elif kind == "stranger":
            if not batches:
                return  # there may be no tables yet
            self._say(look_after_as_a_stranger(self.folder, self._spark))
        elif kind == "anew":
            self._make_anew()
        else:
            targets = self.driver.jvms() if kind == "jvm" else self.driver.workers()
            if not targets:
                return  # there is none yet
            os.kill(targets[-1], signal.SIGKILL)
            if (code := self.driver.ended(60 if kind == "jvm" else 1)) is not None:
                self._start_again(code)
        self.killed[kind] += 1
        told = f"{len(self.ledger.told)} acknowledged, {self.driver.all_batches} batches, {self.reader.times} reads"
        self._say(f"{kind} in batch {batches} of its life; {told}")

    def _say(self, words: str) -> None:
        print(f"{time.monotonic() - self._began:4.0f} s  {words}", flush=True)

    def _leave(self, what: str) -> None:
        """WHAT took too long, and is not waited for."""
        self._say(f"not waited for: {what}")
        self.unsettled.append(what)

    def _create_topic(self) -> None:
        self._admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)

    def _make_anew(self) -> None:
        """When all is in the tables; what had not been read would be lost, whatever the pipeline does."""
        with self.load.paused():
            if not self._wait_until(lambda: self._arrived() == len(self.ledger.told), "not all records arrived"):
                return
            self._admin.delete_topics([TOPIC])[TOPIC].result(60)
            self._wait_until(lambda: TOPIC not in self._admin.list_topics(timeout=60).topics, "the topic stays")
            self._create_topic()
            self.ledger.anew.append(self.load.number)
        self._wait_for_refusal(1, "recreated")
        checkpoint = self.folder / ".ixion" / "soak"
        checkpoint.rename(checkpoint.with_name(f"soak-{len(self.ledger.anew)}"))
        self.driver.words = ["--again"]
        self.driver.start()

    def _wait_for_refusal(self, wanted: int, words: str) -> None:
        """Until the driver has ended with the code WANTED, and these WORDS among its last."""
        end = time.monotonic() + self._patience_s
        while time.monotonic() < end:
            code = self.driver.ended(0.5)
            if code == wanted and words in self.driver.last_words():
                break
            if code is not None:
                self._start_again(code)
        else:
            self._leave(f"{words!r} was not said: {self.driver.last_words()}")
        self.driver.kill()

    def _arrived(self) -> int:
        try:
            return len(parquet_rows(self.folder / "parquet")) + len(quarantined_rows(self.folder))
        except FileNotFoundError:
            return -1  # files were joined meanwhile

    def _wait_until(self, is_so: Callable[[], bool], otherwise: str) -> bool:
        patience = time.monotonic() + self._patience_s
        while not is_so():
            if (code := self.driver.ended(0.5)) is not None:
                self._start_again(code)
            if time.monotonic() > patience:
                self._leave(otherwise)
                return False
        return True

    def _restart_broker(self) -> None:
        """The driver goes on, or ends and says that running it again can help."""
        self.broker.kill()
        time.sleep(self._chance.uniform(0, 1))
        self.broker.start()

    def _stop(self, kill_after_s: float | None) -> None:
        """By one Ctrl-C: a second one gives the batch up. If the broker has just gone, the last batch may fail."""
        self.driver.process.send_signal(signal.SIGINT)
        code = self.driver.ended(self._patience_s if kill_after_s is None else kill_after_s)
        if kill_after_s is None and code is None:
            self._leave("it did not end after Ctrl-C")
        elif kill_after_s is None and code not in (0, AGAIN):
            self.problems.append(f"after Ctrl-C the driver ended with {code}: {self.driver.last_words()}")
        self._say(f"after Ctrl-C: {'not ended' if code is None else f'ended with {code}'}")
        self.driver.kill()
        self.driver.start()

    def _start_again(self, code: int) -> None:
        if code != AGAIN:
            self.problems.append(f"the driver ended with {code}: {self.driver.last_words()}")
        self.driver.kill()
        self.driver.start()

    def _drain(self) -> None:
        self._say("the last run begins")
        end = time.monotonic() + self._patience_s
        for _ in range(DRAINS):
            words = run_command(self._file, "--json", *self.driver.words)
            try:
                left = max(1.0, end - time.monotonic())
                done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=left)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                self._leave("the last run did not end")
                return
            if done.returncode != AGAIN:
                break
        if done.returncode:
            self.problems.append(f"the last run ended with {done.returncode}: {done.stderr[-600:]}")
        elif lag := json.loads(done.stdout.splitlines()[-1])["summary"]["lag"]:
            self.problems.append(f"the last run left {lag} records behind")
        else:
            self._drained = True

    def judge(self) -> None:
        """Each table against the ledger; Parquet is read without Spark. It is not interrupted any more."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        self._say("the tables are judged")
        self.problems += self.ledger.failed
        if not self.ledger.told:
            self.problems.append("nothing was acknowledged at all")
        quarantined = quarantined_rows(self.folder)
        for kind, rows in rows_of_tables(self.folder, self._spark).items():
            wrong = self.ledger.problems([*rows, *quarantined], drained=self._drained)
            self._say(f"{kind}: {len(rows)} rows, {len(quarantined)} in quarantine, {len(wrong)} problems")
            self.problems += [f"{kind}: {problem}" for problem in wrong]
        self._spark.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=480, help="no kill after these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=100, help="records a second")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds that one thing may take")
    parser.add_argument("--kinds", default=",".join(KINDS), help="what may happen, divided by commas")
    parser.add_argument("--keep", type=Path, help="leave data and tables in this folder")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ixion-soak-lake-") as temporary:
        folder: Path = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        kinds = given.kinds.split(",")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        soak = Soak(
            folder,
            kills=given.kills,
            seconds=given.seconds,
            seed=given.seed,
            rate=given.rate,
            kinds=kinds,
            patience_s=given.patience,
        )
        soak.run()
        soak.judge()
    kills = ", ".join(f"{soak.killed[kind]} {kind}" for kind in KINDS)
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s: {soak.killed.total()} ends ({kills})")
    print(f"{soak.reader.times} reads of Parquet meanwhile, {soak.reader.overtaken} more were overtaken by upkeep")
    print(f"{soak.driver.starts} drivers, {soak.driver.all_batches} batches, {len(soak.ledger.told)} acknowledged")
    for problem in soak.problems[:30]:
        print(f"  {problem}")
    code, words = verdict(soak.problems, soak.unsettled)
    print(words)
    return code


if __name__ == "__main__":
    sys.exit(main())
