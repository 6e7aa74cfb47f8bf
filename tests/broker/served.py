"""`ixion serve` in a process of its own, as users run it.

Use it for exit codes, signals, output and kill -9. A broker in this process is quicker: `tests/broker/support.py`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Self

from devtools.stalls import LIMIT_MS, stalls

READY = re.compile(r"ixion (\S+) ready on (127\.0\.0\.1:(\d+))(?:, \S+)* in (\d+) ms, data in (.+)\n")
NO_PAGES = ("--metrics-port", "off")  # their usual port may be another broker's
SECONDS = 60  # for what must end by itself
# Takes from root, and so from what it becomes, the right to pass over permissions (CAP_DAC_OVERRIDE,
# CAP_DAC_READ_SEARCH). Linux only.
HUMBLY = """
import ctypes, os, sys
for right in (1, 2):
    ctypes.CDLL(None).prctl(24, right)
os.execv(sys.argv[1], sys.argv[1:])
"""


def environment() -> dict[str, str]:
    """This process's, without settings, and with the same ixion that is tested here."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("IXION_")}
    return kept | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def serve_and_wait(*words: str, cwd: Path, humbly: bool = False) -> subprocess.CompletedProcess[str]:
    """For a start that is to fail; `humbly`: files are closed to it as their permissions say, even if we are root."""
    started_by = [sys.executable, "-c", HUMBLY] if humbly and os.geteuid() == 0 else []
    return subprocess.run(
        [*started_by, sys.executable, "-m", "ixion", "serve", *NO_PAGES, *words],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


class Served:
    """A broker on a free port, ready when the block begins; killed at its end if it still runs."""

    def __init__(self, cwd: Path, *words: str, log: Path | None = None) -> None:
        """`log`: a file for what it prints to standard error, to be read while it runs."""
        self._log = log
        port = () if any(word.startswith("listeners=") for word in words) else ("--port", "0")
        with nullcontext(subprocess.PIPE) if log is None else log.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ixion", "serve", *port, *NO_PAGES, *words],
                cwd=cwd,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.line = ""
        self.bootstrap = ""
        self.addresses: list[str] = []

    def __enter__(self) -> Self:
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = READY.fullmatch(self.line)
        if found is None:
            self.process.kill()
            raise AssertionError(f"not ready: {self.line!r}, {self._ended()[2]}")
        self.bootstrap = found[2]
        self.addresses = re.findall(r"127\.0\.0\.1:\d+", self.line)  # one for each listener
        return self

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, and what it printed after the ready line and to standard error."""
        self.process.send_signal(number)
        return self._ended()

    def _ended(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err if self._log is None else self._log.read_text()

    def stop_without_stalls(self, number: int = signal.SIGTERM, limit_ms: int = LIMIT_MS) -> None:
        """Stops it, and fails if anything held its event loop up for too long."""
        _, _, logged = self.stop(number)
        assert stalls(logged, limit_ms) == [], logged

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
