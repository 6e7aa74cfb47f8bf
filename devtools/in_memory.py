"""Runs a command whose temporary files are in memory, where the machine has room for them.

    python -m devtools.in_memory python -m pytest tests

A broker syncs about 25 files between its start and its stop. On a disk the tests wait for that longer than for anything
else: 200 ms a broker, against 10 ms in memory. The command gets its own directory as TMPDIR; it is removed in the end,
and so are the directories of earlier runs that were killed. With too little memory, or none of it mounted as a file
system, the command uses the usual directory. IXION_TESTS_ON_DISK=1 asks for that.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

MOUNT = Path("/dev/shm")
PREFIX = "ixion-tests-"
ROOM = 4 << 30  # bytes: the whole suite has been seen to hold 1 GB at a time


def room(mount: Path) -> int:
    """Bytes that may be written there: free in the file system, and of the memory that no process uses."""
    try:
        found = os.statvfs(mount)
        memory = Path("/proc/meminfo").read_text()
    except OSError:
        return 0
    if found.f_flag & os.ST_NOEXEC or not os.access(mount, os.W_OK):  # some tests run what they have written
        return 0
    available = next((int(line.split()[1]) << 10 for line in memory.splitlines() if line.startswith("MemAvailable")), 0)
    return min(found.f_bavail * found.f_frsize, available // 2)


def remove_leftovers(mount: Path) -> None:
    """Directories are named after their process; those of a process that has ended are not in use."""
    for path in mount.glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(path, ignore_errors=True)


def run(command: list[str], mount: Path = MOUNT) -> int:
    if os.environ.get("IXION_TESTS_ON_DISK") or room(mount) < ROOM:
        return wait_for(subprocess.Popen(command))
    remove_leftovers(mount)
    folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=mount)
    try:
        return wait_for(subprocess.Popen(command, env={**os.environ, "TMPDIR": folder}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(process: subprocess.Popen[bytes]) -> int:
    """The exit code. Ctrl-C reaches the command by itself; a SIGTERM to us is passed on."""
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
