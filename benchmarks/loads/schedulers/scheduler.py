"""What the benchmark of delayed messages asks of each system.

The payload of a message begins with its due time, in milliseconds, and a colon.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

PATIENCE_S = 120


class Scheduler(Protocol):
    """One that runs. `schedule` is called by one thread, `arrivals` by another."""

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        """Messages by due time, which rise. Returns when all are acknowledged."""

    def arrivals(self, count: int) -> Iterator[bytes]:
        """The next so many payloads, as they are delivered. Those that are due after now, even if called late."""

    def resident_bytes(self) -> int:
        """Memory of the process that keeps what waits."""

    def kill(self) -> None:
        """End that process, as kill -9 does."""


class Start(Protocol):
    def __call__(self, data: Path, /) -> AbstractContextManager[Scheduler]:
        """Start on a directory, which may have been left by one that was killed."""


def now_ms() -> float:
    return time.time_ns() / 1e6


def resident_of(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no VmRSS of process {pid}")
