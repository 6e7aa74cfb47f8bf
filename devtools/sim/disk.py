"""A disk of a simulated broker: its power can fail, and it can fail itself, fill up, be slow, or be replaced.

The files are real ones in a directory in memory, so everything that reads them works as ever; beside them is kept what
of each file is on the disk. A new name, a rename and a deletion last at once; the bytes of a file last once synced.
(Real disks may also lose names; the tests of `log` have a disk that does.)
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

from ixion.broker.log.files import Files, Part

ROOMY: Final = os.statvfs_result((4096, 4096, 1 << 28, 1 << 28, 1 << 28, 1 << 20, 1 << 20, 1 << 20, 0, 255))
FULL: Final = os.statvfs_result((4096, 4096, 1 << 28, 0, 0, 1 << 20, 1 << 20, 1 << 20, 0, 255))


class SimFiles(Files):
    disks: ClassVar[dict[str, SimFiles]] = {}  # of this run, by folder

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._paths: dict[int, str] = {}  # by descriptor
        self._synced: dict[str, bytes] = {}  # of files with writes that are not synced: what the disk has
        self.full = False
        self.fails = False
        self.slow = False
        self.on_slow: Callable[[], None] = lambda: None  # a slow disk has been written to
        self.on_truncate: Callable[[], None] = lambda: None  # a log was cut
        SimFiles.disks[folder] = self

    def _check(self) -> None:
        if self.fails:
            raise OSError(errno.EIO, "Input/output error")

    def _touch(self, fd: int) -> None:
        """Before a change: remember what is on the disk."""
        path = self._paths[fd]
        if path not in self._synced:
            self._synced[path] = os.pread(fd, os.fstat(fd).st_size, 0)

    def open(self, path: str) -> int:
        self._check()
        fd = super().open(path)
        self._paths[fd] = path
        return fd

    def open_existing(self, path: str) -> int:
        self._check()
        fd = super().open_existing(path)
        self._paths[fd] = path
        return fd

    def open_to_read(self, path: str) -> int:
        self._check()
        return super().open_to_read(path)

    def read_file(self, path: str) -> bytes:
        self._check()
        return super().read_file(path)

    def list_dir(self, path: str) -> list[os.DirEntry[str]]:
        self._check()
        return sorted(super().list_dir(path), key=lambda entry: entry.name)

    def read(self, fd: int, size: int, position: int) -> bytes:
        self._check()
        return super().read(fd, size, position)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        self._check()
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._touch(fd)
        super().write(fd, position, parts)
        if self.slow:
            self.on_slow()

    def truncate(self, fd: int, size: int) -> None:
        self._check()
        self._touch(fd)
        if self._paths[fd].endswith(".log") and size < os.fstat(fd).st_size:
            self.on_truncate()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._check()
        self._synced.pop(self._paths[fd], None)
        if self.slow:
            self.on_slow()

    def sync_dir(self, _path: str) -> None:
        """Names last at once."""
        self._check()

    def rename(self, old: str, new: str) -> None:
        self._check()
        super().rename(old, new)
        self._synced.pop(new, None)
        for known in [known for known in self._synced if known == old or known.startswith(old + "/")]:
            self._synced[new + known[len(old) :]] = self._synced.pop(known)
        for fd, known in self._paths.items():
            if known == old or known.startswith(old + "/"):
                self._paths[fd] = new + known[len(old) :]

    def remove(self, path: str) -> None:
        self._check()
        self._synced.pop(path, None)
        super().remove(path)

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """For the simulation's own reads: they find what is there."""
        fails, self.fails = self.fails, False
        try:
            yield
        finally:
            self.fails = fails

    def space(self) -> os.statvfs_result:
        self._check()
        return FULL if self.full else ROOMY

    # What happens to it.

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

    def replace(self) -> None:
        """Another disk, empty, is in its place."""
        self._synced.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def mend(self) -> None:
        self.full = self.fails = self.slow = False


def space_of(path: object) -> os.statvfs_result:
    """In place of `os.statvfs`."""
    for folder, disk in SimFiles.disks.items():
        if str(path).startswith(folder):
            return disk.space()
    return ROOMY
