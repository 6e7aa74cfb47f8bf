"""A process that outlives the command that started it, identified by its id and start time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ixion.language.model.errors import ErrorCode, KafkaError

LOOK_S: Final = 0.02


@dataclass
class Process:
    pid: int = 0
    started: str = ""  # with the pid it identifies one process

    @property
    def running(self) -> bool:
        return self.pid > 0 and start_of(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """KafkaError if the process belongs to another user."""
        handle = -1
        try:
            if hasattr(os, "pidfd_open"):  # a pidfd stays with its process; a pid may be reused
                handle = os.pidfd_open(self.pid) if self.pid > 0 else -1
            if self.running:
                if handle >= 0:
                    signal.pidfd_send_signal(handle, number)
                else:
                    os.kill(self.pid, number)
        except ProcessLookupError:
            pass  # it has ended
        except PermissionError:
            raise failure(f"process {self.pid} belongs to another user") from None
        finally:
            if handle >= 0:
                os.close(handle)


def kill(process: Process) -> None:
    """Kill the process; returns when it has ended."""
    process.signal(signal.SIGKILL)
    while process.running:
        time.sleep(LOOK_S)
    with suppress(ChildProcessError):  # it was started by another command
        os.waitpid(process.pid, os.WNOHANG)


def start_of(pid: int) -> str | None:
    """The start time of a process, as the system writes it; None if there is no such process, or it is a zombie."""
    if os.path.isdir("/proc/self"):
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        # It counts from the boot of the machine, so after a reboot another process may have the same value.
        return None if fields[0] in (b"Z", b"X") else f"{fields[19].decode()}@{life_of_machine()}"
    shown = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S603, S607
    words = shown.stdout.decode(errors="replace").split()
    return None if not words or words[0].startswith("Z") else " ".join(words[1:])


def life_of_machine() -> str:
    """An id of the present boot of this machine; empty if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def failure(text: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
