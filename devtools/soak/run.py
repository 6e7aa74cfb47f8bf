"""Runs the clients, disturbs them, and judges what they saw. A disturbance is one of four:

the broker is killed           and started anew on what it left
the broker sleeps              for longer than clients wait: they send again what it then finds twice
a client is killed             and another takes its place, under the same transactional id
a client sleeps                until another has taken its place, and wakes: it does not know that it was replaced,
                               and what it goes on with must not count
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.history.checker import Anomaly, check
from devtools.history.copies import check_copies
from devtools.history.operation import Outcome, read_history
from devtools.jars import classpath
from devtools.jvm import compile_java, java_command
from devtools.soak.broken import SOURCES
from devtools.stalls import stalls

JAVA_WRITER = Path(__file__).parent / "java" / "SoakWriter.java"
PARTITIONS = 4
TOPIC = "written"
COPY = "copied"
BETWEEN_S = (0.5, 4.0)
BROKER_SLEEPS_S = (1.2, 2.5)  # the clients' socket.timeout.ms is 1000
REPLACED_WITHIN_S = 5.0  # transaction.timeout.ms, after which the sleeper's transaction ends by itself
LIVES_ON_S = 1.5  # a client that was replaced
CATCH_UP_S = 600.0
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    # A group is complete again soon, or copiers would spend their time between two disturbances with joining.
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1_000,
}


# The modules of the clients, by name; a writer in Java beside two others unless all clients are ours.
CLIENTS: dict[str, dict[str, tuple[str, ...]]] = {
    "confluent": {
        "writer-0": ("writer",),
        "writer-1": ("writer",),
        "copier-0": ("copier",),
        "copier-1": ("copier",),
        "reader-0": ("reader",),
        "reader-1": ("reader",),
        "last": ("reader",),
    },
    "ixion": {
        "writer-0": ("our_writer",),
        "writer-1": ("our_writer", "--asyncio"),
        "writer-2": ("our_writer",),
        "copier-0": ("our_copier",),
        "copier-1": ("our_copier",),
        "reader-0": ("our_reader",),
        "reader-1": ("our_reader",),
        "last": ("our_reader",),
    },
    "mixed": {
        "writer-0": ("writer",),
        "writer-1": ("our_writer",),
        "copier-0": ("copier",),
        "copier-1": ("our_copier",),
        "reader-0": ("our_reader",),
        "reader-1": ("reader",),
        "last": ("our_reader",),
    },
}


class Soak:
    replicas = 1

    def __init__(
        self, directory: Path, seconds: float, seed: int, broken: str | None = None, clients: str = "confluent"
    ) -> None:
        """`broken` is the name of a fault that the broker is to have, `clients` a row of CLIENTS."""
        self._of = CLIENTS[clients]
        self._directory = directory
        self._broken = broken
        self._seconds = seconds
        self._random = random.Random(seed)
        self._histories = directory / "histories"
        self._histories.mkdir(parents=True)
        self.bootstrap = self._serve()
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self.done: Counter[str] = Counter()

    def _serve(self) -> str:
        """Start what serves the clients; its address."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._broker = self._start_broker()
        return f"127.0.0.1:{self._port}"

    def _stop_serving(self) -> None:
        self._broker.kill()
        self._broker.wait()

    def _disturbances(self) -> dict[Callable[[], None], int]:
        """Each with its weight."""
        return {self._kill_broker: 3, self._broker_sleeps: 3, self._kill_client: 3, self._client_sleeps: 4}

    def run(self) -> list[Anomaly]:
        try:
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            for future in admin.create_topics(
                [NewTopic(name, PARTITIONS, self.replicas) for name in (TOPIC, COPY)]
            ).values():
                future.result(30)
            for name in self._of:
                if name.startswith("writer"):
                    self._start(name, TOPIC, str(PARTITIONS))
                elif name.startswith("copier"):
                    self._start(name, TOPIC, COPY)
            if "writer-2" not in self._of:
                self._clients["writer-java"] = self._spawn(self._java_writer("writer-java"))
            self._start("reader-0", TOPIC, str(PARTITIONS))
            self._start("reader-1", COPY, str(PARTITIONS))
            self._start_more(admin)
            self._disturb()
            self._settle()
        finally:
            for process in self._clients.values():
                process.kill()
                process.wait()
            self._stop_serving()
        return self.judge()

    def _start_more(self, admin: AdminClient) -> None:
        """Clients of a soak of its own."""

    def judge(self) -> list[Anomaly]:
        lines = [line for file in sorted(self._histories.iterdir()) for line in file.read_text().splitlines()]
        operations = list(read_history(lines))
        for outcome in Outcome:
            told = sum(operation.kind == "txn" and operation.outcome is outcome for operation in operations)
            print(f"transactions {outcome.value}: {told}")
        print(f"records read: {sum(len(poll.records) for each in operations for poll in each.polls)}")
        print(f"disturbances: {dict(self.done)}")
        held_up = [line for log in sorted(self._directory.glob("broker*.log")) for line in stalls(log.read_text())]
        return [
            *check(operations),
            *check_copies(operations, TOPIC, COPY),
            *(Anomaly("stall", line) for line in held_up),
        ]

    def _disturb(self) -> None:
        chances = self._disturbances()
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            time.sleep(self._random.uniform(*BETWEEN_S))
            (disturb,) = self._random.choices(list(chances), list(chances.values()))
            self.done[disturb.__name__.strip("_")] += 1
            disturb()

    def _kill_broker(self) -> None:
        self._broker.kill()
        self._broker.wait()
        self._broker = self._start_broker()

    def _broker_sleeps(self) -> None:
        self._broker.send_signal(signal.SIGSTOP)
        time.sleep(self._random.uniform(*BROKER_SLEEPS_S))
        self._broker.send_signal(signal.SIGCONT)

    def _kill_client(self) -> None:
        name = self._random.choice([name for name in self._clients if not name.startswith("reader")])
        process = self._clients[name]
        process.kill()
        process.wait()
        self._clients[name] = self._spawn(process.args)

    def _client_sleeps(self) -> None:
        name = self._random.choice(["writer-0", "writer-1", "copier-0", "copier-1"])
        sleeper = self._clients[name]
        sleeper.send_signal(signal.SIGSTOP)
        other = self._clients[name] = self._spawn(sleeper.args)
        until = time.monotonic() + REPLACED_WITHIN_S
        while time.monotonic() < until and not self._has_written(name, other):
            time.sleep(0.05)
        sleeper.send_signal(signal.SIGCONT)
        time.sleep(LIVES_ON_S)
        sleeper.kill()
        sleeper.wait()

    def _has_written(self, name: str, process: subprocess.Popen[bytes]) -> bool:
        file = self._histories / f"{name}-{process.pid}.jsonl"
        return file.exists() and file.stat().st_size > 0

    def _settle(self) -> None:
        """Writers stop; what is open runs out of time; copiers catch up; then everything is read from the beginning.

        They stop one after the other: what the first leaves open stands in the way of what the last commits.
        """
        self._end("writer", pause_s=1)
        time.sleep(7)  # longer than transaction.timeout.ms
        begun = time.monotonic()
        before, copied = -1, self._copied()
        while copied != before:
            if time.monotonic() - begun > CATCH_UP_S:
                raise RuntimeError(f"copiers still copy after {CATCH_UP_S:.0f} s; they are too slow to be judged")
            time.sleep(4)
            before, copied = copied, self._copied()
        print(f"copiers caught up within {time.monotonic() - begun:.0f} s")
        self._end("copier")
        time.sleep(7)
        for topic in (TOPIC, COPY):
            last = self._spawn(self._command("last", f"last-{topic}", topic, str(PARTITIONS), "--to-the-end"))
            last.wait(120)

    def _copied(self) -> int:
        return sum(file.stat().st_size for file in self._histories.glob("copier-*"))

    def _end(self, kind: str, pause_s: float = 0) -> None:
        for name, process in self._clients.items():
            if name.startswith(kind):
                process.kill()
                process.wait()
                time.sleep(pause_s)

    def _start_broker(self) -> subprocess.Popen[bytes]:
        program = ["ixion"] if self._broken is None else ["devtools.soak.broken", self._broken]
        command = [sys.executable, "-m", *program, "serve", "--port", str(self._port)]
        options = ["--data", str(self._directory / "data")]
        options += [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
        environment = os.environ | ({} if self._broken is None else {"PYTHONPATH": str(SOURCES)})
        log = (self._directory / "broker.log").open("ab")
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=log, env=environment)
        assert process.stdout is not None
        line = process.stdout.readline()
        if b"ready" not in line:
            raise RuntimeError(f"the broker did not start: {line!r}, see {self._directory / 'broker.log'}")
        return process

    def _start(self, name: str, *arguments: str) -> None:
        self._clients[name] = self._spawn(self._command(name, name, *arguments))

    def _command(self, role: str, name: str, *arguments: str) -> list[str]:
        module, *options = self._of[role]
        words = [self.bootstrap, str(self._histories), name, *arguments, *options]
        return [sys.executable, "-m", f"devtools.soak.{module}", *words]

    def _java_writer(self, name: str) -> list[str]:
        jars = classpath("clients-4.3.0")
        path = f"{compile_java(JAVA_WRITER, jars)}:{jars}"
        arguments = (self.bootstrap, str(self._histories), name, TOPIC, str(PARTITIONS))
        return java_command("SoakWriter", *arguments, classpath=path, options=["-Xmx256m"])

    def _spawn(self, command: object) -> subprocess.Popen[bytes]:
        log = (self._directory / "clients.log").open("ab")
        return subprocess.Popen(command, stdout=log, stderr=log)  # type: ignore[call-overload,no-any-return]
