"""What lives through a soak: a producer that never stops, and a pipeline that is started again whenever it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer

from tests.pipelines.ledger import Ledger, record
from tests.pipelines.processes import descendants, run_command
from tests.pipelines.support import parquet_rows
from tests.pipelines.three_tables import TOPIC

PARTITIONS = 2


class Load:
    """Sends numbered records at RATE a second, until it is stopped; the ledger gets what is acknowledged."""

    def __init__(self, bootstrap: str, ledger: Ledger, rate: float) -> None:
        self._ledger = ledger
        self._pause_s = 1 / rate
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,  # what is sent again after a kill is not written twice
                "linger.ms": 5,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "message.timeout.ms": 300_000,
                "log_level": 0,
            }
        )
        self.number = 0  # of the next record
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def add_column(self) -> None:
        """All records from the next one on have one field more."""
        with self._sending:
            self._ledger.columns.append(self.number)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """All that was sent before is acknowledged, and nothing is sent meanwhile."""
        with self._sending:
            if left := self._producer.flush(120):
                self._ledger.failed.append(f"{left} records were never answered")
            yield

    def _run(self) -> None:
        while not self._stop.wait(self._pause_s):
            with self._sending:
                number = self.number
                value = json.dumps(record(number, self._ledger.columns))
                self._producer.produce(TOPIC, value, partition=number % PARTITIONS, on_delivery=self._told(number))
                self._producer.poll(0)
                self.number += 1

    def _told(self, number: int) -> Any:
        def told(error: KafkaError | None, message: Any) -> None:
            if error is None:
                self._ledger.acknowledged(message.partition(), message.offset(), number)
            else:
                self._ledger.failed.append(f"record {number}: {error}")

        return told

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if left := self._producer.flush(120):
            self._ledger.failed.append(f"{left} records were never answered")


class Driver:
    """`ixion pipeline run --follow`; what it says is read as it comes."""

    def __init__(self, file: Path, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment
        self.words: list[str] = []  # more of the command
        self.batches = 0  # in this life
        self.all_batches = 0
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.batches = 0
        self.starts += 1
        self._errors = self._file.with_suffix(f".{self.starts}.err")
        with self._errors.open("wb") as errors:
            words = run_command(self._file, "--every", "100ms", *self.words)
            more = {**os.environ, **self._environment}
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, env=more)
        self._reader = threading.Thread(target=self._read, args=(self.process,))
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if re.match(r"batch \d+ ", line):
                self.batches += 1
                self.all_batches += 1
        process.stdout.close()

    def jvms(self) -> list[int]:
        return [pid for pid, words in descendants(self.process.pid).items() if "org.apache.spark" in words]

    def workers(self) -> list[int]:
        """The daemon, if it is there, comes before its workers."""
        return [pid for pid, words in descendants(self.process.pid).items() if "pyspark.daemon" in words]

    def ended(self, patience_s: float) -> int | None:
        """Its exit code, if it ends in time."""
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None

    def last_words(self) -> str:
        return self._errors.read_text()[-600:].strip()

    def kill(self, *, wait_for_jvm: bool = True) -> None:
        """A JVM ends when it notices that its Python has gone; the next run waits for that by itself."""
        left = self.jvms() if wait_for_jvm else []
        self.process.kill()
        self.process.wait()
        self._reader.join()
        end = time.monotonic() + 60
        while any(Path("/proc", str(pid)).exists() for pid in left) and time.monotonic() < end:
            time.sleep(0.05)


class Reader:
    """Reads a folder of Parquet files again and again, as a reader that knows nothing of the pipeline."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._problems: list[str] = []
        self.times = 0
        self.overtaken = 0  # files that were listed had gone when they were opened
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(1):
            try:
                rows = parquet_rows(self._folder)
            except FileNotFoundError:
                self.overtaken += 1
                continue
            self.times += 1
            found = Counter(row["n"] for row in rows)
            twice = [number for number, times in found.items() if times > 1]
            if twice:
                self._problems.append(f"read {self.times}: {len(twice)} rows were there twice, such as {twice[:3]}")

    def stop(self) -> list[str]:
        """What it found."""
        self._stop.set()
        self._thread.join()
        return self._problems
