"""The lock of a checkpoint: at most one run, or upkeep, on this machine.

The file holds the process, the JVM in which its Spark runs, and `upkeep` if that and not a run holds it. When a run is
killed, its JVM notices a moment later, and may finish a write until then. So the next holder waits for its end.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from ixion.pipelines.errors import PipelineError

UPKEEP: Final = "upkeep"
ORPHAN_S: Final = 30.0  # a JVM whose driver was killed ends within a few seconds


@contextmanager
def free_for_upkeep(path: str, jvm: int) -> Iterator[bool]:
    """Hold the lock, if no run has it; a run that begins meanwhile waits. Yields whether it is held."""
    with _opened(path) as handle:
        if not _taken(handle):
            yield False
            return
        _, old_jvm, _ = _holder(handle)
        _begin(handle, old_jvm, jvm, f" {UPKEEP}")
        yield True


@contextmanager
def held_for_run(path: str, jvm: int) -> Iterator[None]:
    """JVM is the process in which Spark runs."""
    with _opened(path) as handle:
        pid, old_jvm, purpose = _holder(handle)
        while not _taken(handle):
            pid, old_jvm, purpose = _holder(handle)
            if purpose != UPKEEP:
                raise PipelineError(f"this pipeline is running already (process {pid})", retry=True)
            time.sleep(0.1)
        _begin(handle, old_jvm, jvm, "")
        yield


def private_folder() -> str:
    """A folder of this user among the temporary files. Another user could have made one of that name."""
    path = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir(), f"ixion-{os.getuid()}")
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PipelineError(f"{path} must be a folder that only this user can read; remove it") from None
    return path


def _opened(path: str) -> TextIO:
    """A link is not followed, because what it leads to would be emptied."""
    try:
        return open(path, "a+", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PipelineError(f"the lock {path} must be a file of its own, not a link; remove it") from None
        raise


def _begin(handle: TextIO, old_jvm: str, jvm: int, purpose: str) -> None:
    if old_jvm.isdigit() and int(old_jvm) != jvm:
        _wait_for_end(int(old_jvm))
    handle.truncate(0)
    handle.write(f"{os.getpid()} {jvm}{purpose}")
    handle.flush()


def _taken(handle: TextIO) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: TextIO) -> tuple[str, str, str]:
    """Process, JVM and purpose, as the last holder of a lock has written them."""
    handle.seek(0)
    pid, _, rest = handle.read().strip().partition(" ")
    jvm, _, purpose = rest.partition(" ")
    return pid, jvm, purpose


def _wait_for_end(jvm: int) -> None:
    end = time.monotonic() + ORPHAN_S
    while _is_java(jvm):
        if time.monotonic() > end:
            raise PipelineError(f"the Spark of an earlier run is still running (process {jvm})", retry=True)
        time.sleep(0.1)


def _is_java(pid: int) -> bool:
    """By /proc; without it False, so nothing waits for the process."""
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
