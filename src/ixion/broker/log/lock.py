"""`.lock`: one process, and in it one owner, per log directory.

The lock is a POSIX lock (fcntl), as Java's FileChannel uses, so ixion and Apache Kafka exclude each other too. It does
not exclude a second owner in the same process; a set of the directories locked by this process does.
"""

from __future__ import annotations

import fcntl
import os
import threading
from typing import Final

FILE_NAME: Final = ".lock"

_held: set[str] = set()
_held_lock = threading.Lock()


class DirectoryLockedError(Exception):
    """Another broker uses the directory."""


class DirectoryLock:
    def __init__(self, directory: str) -> None:
        self._key = os.path.realpath(directory)
        self._fd = -1
        with _held_lock:
            if self._key in _held:
                raise DirectoryLockedError(f"{directory} is in use by another broker of this process")
            fd = os.open(os.path.join(directory, FILE_NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(fd)
                raise DirectoryLockedError(f"{directory} is in use by another process") from error
            self._fd = fd
            _held.add(self._key)

    def release(self) -> None:
        with _held_lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
                _held.discard(self._key)
