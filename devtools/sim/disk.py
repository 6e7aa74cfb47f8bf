"""A disk whose power can fail: what was not synced is gone then.

The files are real ones in a directory in memory, so everything that reads them works as ever; beside them is kept what
of each file is on the disk. A new name, a rename and a deletion last at once; the bytes of a file last once synced.
(Real disks may also lose names; the tests of `log` have a disk that does.)
"""

from __future__ import annotations

import errno
import os

from ixion.log.files import Files, Part


class SimFiles(Files):
    def __init__(self) -> None:
        self._paths: dict[int, str] = {}  # by descriptor
        self._synced: dict[str, bytes] = {}  # of files with writes that are not synced: what the disk has
        self.full = False

    def _touch(self, fd: int) -> None:
        """Before a change: remember what is on the disk."""
        path = self._paths[fd]
        if path not in self._synced:
            self._synced[path] = os.pread(fd, os.fstat(fd).st_size, 0)

    def open(self, path: str) -> int:
        fd = super().open(path)
        self._paths[fd] = path
        return fd

    def open_existing(self, path: str) -> int:
        fd = super().open_existing(path)
        self._paths[fd] = path
        return fd

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._touch(fd)
        super().write(fd, position, parts)

    def truncate(self, fd: int, size: int) -> None:
        self._touch(fd)
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._synced.pop(self._paths[fd], None)

    def sync_dir(self, path: str) -> None:
        """Names last at once."""

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        for known in [known for known in self._synced if known == old or known.startswith(old + "/")]:
            self._synced[new + known[len(old) :]] = self._synced.pop(known)
        for fd, known in self._paths.items():
            if known == old or known.startswith(old + "/"):
                self._paths[fd] = new + known[len(old) :]

    def remove(self, path: str) -> None:
        self._synced.pop(path, None)
        super().remove(path)

    def lose_power(self) -> int:
        """Every file has what was synced; says how many lost something."""
        lost = 0
        for path, content in self._synced.items():
            if os.path.exists(path):
                with open(path, "wb") as file:
                    file.write(content)
                lost += 1
        self._synced.clear()
        return lost
