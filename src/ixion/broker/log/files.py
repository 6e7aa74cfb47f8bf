"""All reads and changes of the disk by the log package.

Everything goes through a `Files` object: reads, lists, appends, truncations, renames, deletions, syncs. The real one
below is a thin layer over the operating system. Tests replace it: one records every step, so that a crash can be
replayed after each of them with unsynced bytes lost; another fails like a broken or a full disk.

Rule for the caller: a write is in the page cache when `write` returns and on the disk when `sync` returns; a new,
renamed or deleted name is on the disk when `sync_dir` of its folder returns.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import errno
import os
from typing import Final

from ixion._native import mypyc_attr

Part = bytes | bytearray | memoryview

PRIVATE: Final = 0o700  # of directories: keys of users and records are nobody else's
_SMALL: Final = 1 << 16  # bytes read at a time


@mypyc_attr(allow_interpreted_subclasses=True)
class Files:
    def open(self, path: str) -> int:
        """Opens for reading and writing; creates the file if it is missing."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def open_existing(self, path: str) -> int:
        """Opens for reading and, if the disk allows it, writing. A log on a read-only disk can still be read."""
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def open_to_read(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self, fd: int) -> None:
        os.close(fd)

    def read_file(self, path: str) -> bytes:
        """All of a small file; FileNotFoundError if there is none."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = piece = os.read(fd, _SMALL)
            while piece:
                piece = os.read(fd, _SMALL)
                content += piece
        finally:
            os.close(fd)
        return content

    def list_dir(self, path: str) -> list[os.DirEntry[str]]:
        with os.scandir(path) as entries:
            return list(entries)

    def read(self, fd: int, size: int, position: int) -> bytes:
        return os.pread(fd, size, position)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        """Writes all of `parts`, one after the other, from `position` on."""
        total = 0
        for part in parts:
            total += len(part)
        done = os.pwritev(fd, parts, position)
        while done < total:
            rest = memoryview(b"".join(parts))[done:]
            done += os.pwrite(fd, rest, position + done)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        os.fdatasync(fd)

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """Deletes a file; a missing file is no error."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def make_dir(self, path: str) -> None:
        os.makedirs(path, PRIVATE, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        import shutil  # with three kinds of compression behind it, 0.4 MB

        shutil.rmtree(path)

    def replace_content(self, path: str, content: bytes, sync: bool) -> None:
        """Replaces the content of a file in one step: a reader sees the old file or the new one.

        If that fails, the temporary file is deleted: the disk may be full.
        """
        fresh = path + ".tmp"
        fd = self.open(fresh)
        try:
            try:
                self.truncate(fd, 0)
                if content:
                    self.write(fd, 0, [content])
                if sync:
                    self.sync(fd)
            finally:
                self.close(fd)
            self.rename(fresh, path)
        except OSError:
            try:
                self.remove(fresh)
            except OSError:
                pass  # report the first error
            raise
        if sync:
            self.sync_dir(os.path.dirname(path) or ".")
