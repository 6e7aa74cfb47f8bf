"""The figures of one client in its own process: rate, processor time, peak of memory."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Rate(NamedTuple):
    per_second: float
    cpu_us: float  # of the client's process, per record
    peak_mb: float


class Meter:
    """Runs from its making on."""

    def __init__(self) -> None:
        self._cpu_s = cpu_s()
        self._begun_s = time.perf_counter()

    def rate(self, count: int) -> Rate:
        seconds = time.perf_counter() - self._begun_s
        return Rate(count / seconds, (cpu_s() - self._cpu_s) / count * 1e6, peak_mb())


def peak_mb() -> float:
    """Of this process alone. (`ru_maxrss` begins with what its parent had when it forked.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not say how much memory this process has had")


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def import_ms(statement: str) -> float:
    """The processor time of a fresh interpreter that imports it, beyond one that imports nothing."""

    def cpu_ms(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    return min(cpu_ms(statement) for _ in range(5)) - min(cpu_ms("pass") for _ in range(5))
