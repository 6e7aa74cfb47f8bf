"""Brokers with logins and rights, each in a process of its own: one alone, or three with a shared tree."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from devtools.kafka import free_port
from tests.broker.served import NO_PAGES, environment
from tests.hostile.residue import settings

START_S: Final = 90
STOP_S: Final = 60
EXPIRED: Final = "session has expired"


class Fortress:
    """The output of each process is in a file, because refusals are logged and a pipe that nobody reads would fill."""

    def __init__(self, directory: Path, brokers: int, *, patient: bool = False) -> None:
        self._directory = directory
        self._patient = patient
        self._count = brokers
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.addresses: list[str] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    @property
    def pids(self) -> list[int]:
        return [process.pid for name, process in self._processes.items() if name != "tree"]

    def __enter__(self) -> Self:
        try:
            connect = {}
            if self._count > 1:
                port = free_port()
                self._run("tree", ["cluster", "tree", "--data", str(self._directory / "tree"), "--port", str(port)])
                self._await("tree", "ready|serving|listening|127.0.0.1")
                connect = {"zookeeper.connect": f"127.0.0.1:{port}", **replicas(self._count)}
                if not self._patient:
                    connect["zookeeper.session.timeout.ms"] = "6000"
            for number in range(1, self._count + 1):
                port = free_port()
                given = {
                    **settings(),
                    "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
                    "broker.id": str(number),
                    "queued.max.request.bytes": str(100 << 20),
                    **connect,
                }
                file = self._directory / f"broker-{number}.properties"
                file.touch(0o600)
                file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
                data = self._directory / f"broker-{number}"
                self._run(f"broker-{number}", ["serve", "--config", str(file), "--data", str(data), *NO_PAGES])
                self.addresses.append(f"127.0.0.1:{port}")
            for number in range(1, self._count + 1):
                self._await(f"broker-{number}", " ready on ")
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    def stop(self) -> str:
        """Stop the brokers; what they have logged."""
        for name, process in self._processes.items():
            if name != "tree":
                process.send_signal(signal.SIGTERM)
        for name, process in self._processes.items():
            if name != "tree":
                process.wait(STOP_S)
        return "".join(self._log(name) for name in self._processes)

    def _run(self, name: str, words: list[str]) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", "ixion", *words],
                cwd=self._directory,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _await(self, name: str, text: str) -> None:
        until = time.monotonic() + START_S
        while not re.search(text, self._log(name)):
            if self._processes[name].poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{name} did not start:\n{self._log(name)[-2000:]}")
            time.sleep(0.05)

    def _log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def _kill(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            process.wait()


def replicas(brokers: int) -> dict[str, str]:
    return {
        "default.replication.factor": str(brokers),
        "offsets.topic.replication.factor": str(brokers),
        "transaction.state.log.replication.factor": str(brokers),
        "transaction.state.log.min.isr": str(brokers - 1),
        "min.insync.replicas": str(brokers - 1),
    }
