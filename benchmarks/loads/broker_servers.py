"""The brokers that are compared, each in a process of its own with an empty directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devtools.kafka import RealKafka, free_port

CPUCLOCK_SCHED = 2  # of Linux: a process id and this make a clock, as clock_getcpuclockid(3) does
STOP_S = 120.0  # a broker with very many partitions closes each of them
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    bootstrap: str
    pid: int
    started: float  # time.time when its process was made

    def cpu_seconds(self) -> float:
        """Of all its threads, by the clock of the process: /proc counts in ticks of 10 ms."""
        return time.clock_gettime(~self.pid << 3 | CPUCLOCK_SCHED)

    def resident_mb(self, peak: bool = False) -> float:
        name = "VmHWM:" if peak else "VmRSS:"
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"no {name} of process {self.pid}")


@contextmanager
def ixion(settings: Mapping[str, str] = NOTHING, code: str = "") -> Iterator[Server]:
    """`code`: the directory of another build than the installed one."""
    with tempfile.TemporaryDirectory() as data, ixion_on(data, settings, code) as server:
        yield server


@contextmanager
def ixion_after_kill(fill: Callable[[str], None]) -> Iterator[Server]:
    """Started on the directory of a broker that was killed after `fill` had written to it."""
    with tempfile.TemporaryDirectory() as data:
        with ixion_on(data) as server:
            fill(server.bootstrap)
            os.kill(server.pid, signal.SIGKILL)
        with ixion_on(data) as server:
            yield server


@contextmanager
def ixion_on(data: str, settings: Mapping[str, str] = NOTHING, code: str = "") -> Iterator[Server]:
    port = free_port()
    started = time.time()
    command = [sys.executable, "-m", "ixion", "serve", "--data", data, "--port", str(port)]
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    environment = {**os.environ, "PYTHONPATH": code} if code else None
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    try:
        yield Server(bootstrap=f"127.0.0.1:{port}", pid=process.pid, started=started)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def apache_kafka(settings: Mapping[str, str] = NOTHING) -> Iterator[Server]:
    """3.9.1, KRaft, one node, with the heap of its start script; it never syncs on append either."""
    with tempfile.TemporaryDirectory() as data, apache_kafka_on(data, settings) as server:
        yield server


@contextmanager
def apache_kafka_4(settings: Mapping[str, str] = NOTHING) -> Iterator[Server]:
    """4.3.0, which has share groups; otherwise likewise."""
    with tempfile.TemporaryDirectory() as data, apache_kafka_on(data, settings, "4.3.0") as server:
        yield server


@contextmanager
def apache_kafka_on(data: str, settings: Mapping[str, str] = NOTHING, version: str = "3.9.1") -> Iterator[Server]:
    kafka = RealKafka(version, Path(data), heap="1g", quick=False, properties=settings)
    kafka.format()
    started = time.time()
    kafka.launch()
    try:
        yield Server(bootstrap=kafka.bootstrap, pid=kafka.pid, started=started)
    finally:
        kafka.stop(STOP_S)
