"""What the benchmark of delayed messages asks of each system.

The payload of a message begins with its due time, in milliseconds, and a colon.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

PATIENCE_S = 300


class Scheduler(Protocol):
    """One that runs. `schedule` is called by one thread, `arrivals` by another."""

    pid: int  # of the process that keeps what waits
    early_ms: int  # how long before its due time it may deliver a message, by its documentation

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        """Messages by due time, which rise. Returns when all are acknowledged."""

    def arrivals(self, count: int) -> Iterator[bytes]:
        """The next so many payloads, as they are delivered. Those that are due after now, even if called late."""

    def kill(self) -> None:
        """End that process, as kill -9 does."""


class Start(Protocol):
    def __call__(self, data: Path, /) -> AbstractContextManager[Scheduler]:
        """Start on a directory, which may have been left by one that was killed."""


def now_ms() -> float:
    return time.time_ns() / 1e6


def resident_of(pid: int) -> int:
    """Memory of a process, with the parts of files that it has mapped."""
    return _status_of(pid, "VmRSS:")


def private_of(pid: int) -> int:
    """Memory of a process without mapped files, whose pages the kernel can drop when it needs them."""
    return _status_of(pid, "RssAnon:")


def _status_of(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {name} of process {pid}")
