"""Runs the clients, kills, starts again, and judges what they saw."""

from __future__ import annotations

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
from devtools.history.operation import Outcome, read_history
from devtools.jars import classpath
from devtools.jvm import compile_java, java_command

JAVA_WRITER = Path(__file__).parent / "java" / "SoakWriter.java"
PARTITIONS = 4
TOPIC = "written"
COPY = "copied"
BETWEEN_KILLS_S = (1.0, 5.0)


class Soak:
    def __init__(self, directory: Path, seconds: float, seed: int) -> None:
        self._directory = directory
        self._seconds = seconds
        self._random = random.Random(seed)
        self._histories = directory / "histories"
        self._histories.mkdir(parents=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.bootstrap = f"127.0.0.1:{self._port}"
        self._broker = self._start_broker()
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = {"broker": 0, "client": 0}

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
        print(f"kills: {self.kills['broker']} of the broker, {self.kills['client']} of clients")
        return check(operations)

    def _disturb(self) -> None:
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            time.sleep(self._random.uniform(*BETWEEN_KILLS_S))
            if self._random.random() < 0.4:
                self._broker.send_signal(signal.SIGKILL)
                self._broker.wait()
                self._broker = self._start_broker()
                self.kills["broker"] += 1
            else:
                name = self._random.choice([name for name in self._clients if not name.startswith("reader")])
                process = self._clients[name]
                process.send_signal(signal.SIGKILL)
                process.wait()
                self._clients[name] = self._spawn(process.args)
                self.kills["client"] += 1

    def _settle(self) -> None:
        """Writers stop; what is open runs out of time; copiers catch up; then everything is read from the beginning."""
        for name, process in self._clients.items():
            if name.startswith("writer"):
                process.kill()
                process.wait()
        time.sleep(10)
        for name, process in self._clients.items():
            if name.startswith("copier"):
                process.kill()
                process.wait()
        time.sleep(7)  # longer than transaction.timeout.ms
        for topic in (TOPIC, COPY):
            last = self._spawn(self._command("reader", f"last-{topic}", topic, str(PARTITIONS), "--to-the-end"))
            last.wait(120)

    def _start_broker(self) -> subprocess.Popen[bytes]:
        interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms=500"
        command = [sys.executable, "-m", "ixion", "serve", "--port", str(self._port)]
        options = ["--data", str(self._directory / "data"), "--set", interval]
        log = (self._directory / "broker.log").open("ab")
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=log)
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
