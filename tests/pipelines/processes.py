"""Brokers and pipelines as processes of their own.

Use it in tests that kill one of them. For a pipeline in the process of the test, use `support`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from devtools.kafka import free_port
from tests.pipelines.support import SMALL, spark_jars


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ixion", *words]


def run_command(file: Path, *more: str, formats: tuple[str, ...] = ()) -> list[str]:
    """`ixion pipeline run`, in a small Spark with the jars of FORMATS (of all, if none is named)."""
    conf = [word for name, value in SMALL.items() for word in ("--conf", f"{name}={value}")]
    return command("pipeline", "run", str(file), "--jars", ",".join(spark_jars(*formats)), *conf, *more)


class Served:
    """`ixion serve` in a process of its own."""

    def __init__(self, data: Path) -> None:
        self.port = free_port()
        self.data = data
        self.start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        words = command("serve", "--data", str(self.data), "--port", str(self.port))
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "ready" in self.process.stdout.readline()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def descendants(pid: int) -> dict[int, str]:
    """Process id -> command line of all that PID has started, and they in turn; parents come first."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended since
            children.setdefault(parent, []).append(int(entry))
    found: dict[int, str] = {}
    left = list(children.get(pid, ()))
    while left:
        each = left.pop(0)
        left += children.get(each, ())
        try:
            found[each] = Path("/proc", str(each), "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return found
