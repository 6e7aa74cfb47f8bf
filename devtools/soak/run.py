"""Runs the clients, kills, starts again, and judges what they saw.

A client may also be put to sleep while another takes its place under the same transactional id, and be woken again: it
does not know that it was replaced, and what it goes on with must not count.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.history.checker import Anomaly, check
from devtools.history.copies import check_copies
from devtools.history.operation import Outcome, read_history
from devtools.jars import classpath
from devtools.jvm import compile_java, java_command
from devtools.soak.broken import SOURCES

JAVA_WRITER = Path(__file__).parent / "java" / "SoakWriter.java"
PARTITIONS = 4
TOPIC = "written"
COPY = "copied"
BETWEEN_KILLS_S = (1.0, 5.0)
SLEEP_S = (0.2, 2.0)  # of a client that is replaced meanwhile
AWAKE_S = 2.0  # how long it then lives on
CATCH_UP_S = 60.0  # copiers that still copy after that are too slow to be judged


class Soak:
    def __init__(self, directory: Path, seconds: float, seed: int, broken: str | None = None) -> None:
        """`broken` is the name of a fault that the broker is to have."""
        self._directory = directory
        self._broken = broken
        self._seconds = seconds
        self._random = random.Random(seed)
        self._histories = directory / "histories"
        self._histories.mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self._port}"
        self._broker = self._start_broker()
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = {"broker": 0, "client": 0, "replaced": 0}

    def run(self) -> list[Anomaly]:
        try:
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (TOPIC, COPY)]).values():
                future.result(30)
            for number in range(2):
                self._start("writer", f"writer-{number}", TOPIC, str(PARTITIONS))
            self._clients["writer-java"] = self._spawn(self._java_writer("writer-java"))
            for number in range(2):
                self._start("copier", f"copier-{number}", TOPIC, COPY)
            self._start("reader", "reader-0", TOPIC, str(PARTITIONS))
            self._start("reader", "reader-1", COPY, str(PARTITIONS))
            self._disturb()
            self._settle()
        finally:
            for process in [*self._clients.values(), self._broker]:
                process.kill()
                process.wait()
        return self.judge()

    def judge(self) -> list[Anomaly]:
        lines = [line for file in sorted(self._histories.iterdir()) for line in file.open()]
        operations = list(read_history(lines))
        for outcome in Outcome:
            told = sum(operation.kind == "txn" and operation.outcome is outcome for operation in operations)
            print(f"transactions {outcome.value}: {told}")
        print(f"records read: {sum(len(poll.records) for each in operations for poll in each.polls)}")
        kills = f"kills: {self.kills['broker']} of the broker, {self.kills['client']} of clients"
        print(f"{kills}; {self.kills['replaced']} clients were replaced in their sleep")
        return [*check(operations), *check_copies(operations, TOPIC, COPY)]

    def _disturb(self) -> None:
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            time.sleep(self._random.uniform(*BETWEEN_KILLS_S))
            what = self._random.random()
            if what < 0.35:
                self._broker.send_signal(signal.SIGKILL)
                self._broker.wait()
                self._broker = self._start_broker()
                self.kills["broker"] += 1
            elif what < 0.7:
                name = self._random.choice([name for name in self._clients if not name.startswith("reader")])
                process = self._clients[name]
                process.send_signal(signal.SIGKILL)
                process.wait()
                self._clients[name] = self._spawn(process.args)
                self.kills["client"] += 1
            else:
                self._replace_in_its_sleep(self._random.choice(["writer-0", "writer-1", "copier-0", "copier-1"]))
                self.kills["replaced"] += 1

    def _replace_in_its_sleep(self, name: str) -> None:
        sleeper = self._clients[name]
        sleeper.send_signal(signal.SIGSTOP)
        self._clients[name] = self._spawn(sleeper.args)
        time.sleep(self._random.uniform(*SLEEP_S))
        sleeper.send_signal(signal.SIGCONT)
        time.sleep(AWAKE_S)
        sleeper.kill()
        sleeper.wait()

    def _settle(self) -> None:
        """Writers stop; what is open runs out of time; copiers catch up; then everything is read from the beginning."""
        self._end("writer")
        time.sleep(7)  # longer than transaction.timeout.ms
        until = time.monotonic() + CATCH_UP_S
        before, copied = -1, self._copied()
        while copied != before and time.monotonic() < until:
            time.sleep(4)
            before, copied = copied, self._copied()
        self._end("copier")
        time.sleep(7)
        for topic in (TOPIC, COPY):
            last = self._spawn(self._command("reader", f"last-{topic}", topic, str(PARTITIONS), "--to-the-end"))
            last.wait(120)

    def _copied(self) -> int:
        return sum(file.stat().st_size for file in self._histories.glob("copier-*"))

    def _end(self, kind: str) -> None:
        for name, process in self._clients.items():
            if name.startswith(kind):
                process.kill()
                process.wait()

    def _start_broker(self) -> subprocess.Popen[bytes]:
        interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms=500"
        program = ["ixion"] if self._broken is None else ["devtools.soak.broken", self._broken]
        command = [sys.executable, "-m", *program, "serve", "--port", str(self._port)]
        options = ["--data", str(self._directory / "data"), "--set", interval]
        environment = os.environ | ({} if self._broken is None else {"PYTHONPATH": str(SOURCES)})
        log = (self._directory / "broker.log").open("ab")
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=log, env=environment)
        assert process.stdout is not None
        line = process.stdout.readline()
        if b"ready" not in line:
            raise RuntimeError(f"the broker did not start: {line!r}, see {self._directory / 'broker.log'}")
        return process

    def _start(self, kind: str, name: str, *arguments: str) -> None:
        self._clients[name] = self._spawn(self._command(kind, name, *arguments))

    def _command(self, kind: str, name: str, *arguments: str) -> list[str]:
        module = f"devtools.soak.{kind}"
        return [sys.executable, "-m", module, self.bootstrap, str(self._histories), name, *arguments]

    def _java_writer(self, name: str) -> list[str]:
        jars = classpath("clients-4.3.0")
        path = f"{compile_java(JAVA_WRITER, jars)}:{jars}"
        arguments = (self.bootstrap, str(self._histories), name, TOPIC, str(PARTITIONS))
        return java_command("SoakWriter", *arguments, classpath=path, options=["-Xmx256m"])

    def _spawn(self, command: object) -> subprocess.Popen[bytes]:
        log = (self._directory / "clients.log").open("ab")
        return subprocess.Popen(command, stdout=log, stderr=log)  # type: ignore[call-overload,no-any-return]
