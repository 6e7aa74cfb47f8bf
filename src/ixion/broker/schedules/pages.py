"""Chunks of far buckets, on the disk: a record that waits for days takes a tenth of a byte of memory.

The file is scratch space. It has no name, so it ends with the process; a start makes another from the notes. A page
does not change between its write and `free`, so a snapshot on a worker thread can read it.
"""

from __future__ import annotations

import logging
import os
import tempfile
from array import array
from typing import Final

from ixion.language.model.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

RECORDS: Final = 1024  # in a page, at most
OFFSET_BYTES: Final = 8
TIME_BYTES: Final = 4
PAGE_BYTES: Final = RECORDS * (OFFSET_BYTES + TIME_BYTES)
NO_PAGE: Final = -1
COPIED: Final = 1 << 20  # bytes at once


class Pages:
    """Use it on one thread, except `read`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: Scratch | None = None
        self._failed = False
        self._count = 0
        self._free: list[int] = []
        self._frozen: list[int] | None = None  # freed while a snapshot may still read them
        self._left: list[Scratch] = []  # files in other directories, from which a snapshot may still read

    def write(self, offsets: array[int], times: array[int]) -> int:
        """Returns the number of the page; -1 if the columns must stay in memory."""
        if self._failed or len(offsets) > RECORDS:
            return NO_PAGE
        page = self._free.pop() if self._free else self._count
        try:
            if self._file is None:
                self._file = nameless_file(self._folder)
            data = offsets.tobytes() + times.tobytes()
            if os.pwrite(self._file.fd, data, page * PAGE_BYTES) != len(data):
                raise OSError("the disk is full")
        except OSError as error:
            self._failed = True
            logger.warning("delayed records stay in memory, %s: %s", self._folder, error)
            return NO_PAGE
        self._count = max(self._count, page + 1)
        return page

    def read(self, page: int, count: int) -> tuple[array[int], array[int]]:
        data = self.read_bytes(page, count)
        offsets, times = array("q"), array("I")
        offsets.frombytes(data[: count * OFFSET_BYTES])
        times.frombytes(data[count * OFFSET_BYTES :])
        return offsets, times

    def read_bytes(self, page: int, count: int) -> bytes:
        file = self._file
        assert file is not None
        size = count * (OFFSET_BYTES + TIME_BYTES)
        try:
            data = os.pread(file.fd, size, page * PAGE_BYTES)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"pages in {self._folder}: {error}") from error
        if len(data) != size:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"pages in {self._folder} are truncated")
        return data

    def free(self, page: int) -> None:
        if self._frozen is None:
            self._free.append(page)
        else:
            self._frozen.append(page)

    def move(self, folder: str) -> None:
        """Use another folder, on another disk, from now on. If the pages cannot be copied, they stay where they are."""
        old = self._file
        try:
            if old is not None:
                made = nameless_file(folder)
                position = 0
                while data := os.pread(old.fd, COPIED, position):
                    position += os.pwrite(made.fd, data, position)
                self._file = made
        except OSError as error:
            logger.warning("pages of delayed records stay in %s: %s", self._folder, error)
            return
        self._folder, self._failed = folder, False
        if old is not None and self._frozen is not None:
            self._left.append(old)

    def freeze(self) -> None:
        """Keep pages as they are until `thaw`."""
        self._frozen = []

    def thaw(self) -> None:
        if self._frozen is not None:
            self._free += self._frozen
            self._frozen = None
            self._left = []


class Scratch:
    """A file without a name, closed when it is dropped."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd: Final = fd

    def __del__(self) -> None:
        os.close(self.fd)


def nameless_file(folder: str) -> Scratch:
    """Has a suffix that a loading log deletes, in case we are killed before the name is removed."""
    fd, path = tempfile.mkstemp(suffix=".tmp", dir=folder)
    os.unlink(path)
    return Scratch(fd)
