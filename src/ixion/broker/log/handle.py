"""An open file that closes itself when its last user drops it.

A fetch may still be sending bytes of a segment when retention deletes it or compaction replaces it. A flush or a
compaction may still use a file that is closed because it is idle. Code that needs the file keeps the handle: the file
may be deleted meanwhile, but its bytes stay until the last handle is dropped.

Rule: use the file through the handle. A bare descriptor does not keep the file open: when it is used, it may be closed
or belong to another file. While a method of the handle runs, its caller holds the handle.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from typing import Final

from ixion._native import i64
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.files import Files, Part
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.codec.sink import Deferred

logger = logging.getLogger(__name__)


class Handle:
    __slots__ = ("fd", "files")

    def __init__(self, files: Files, fd: int) -> None:
        self.files: Final = files
        self.fd: Final = fd

    def __del__(self) -> None:
        try:
            self.files.close(self.fd)
        except OSError as error:
            # The descriptor is closed even so, and no data is lost: an error of the data shows in `sync`.
            logger.warning("closing a file of a log: %s", error)

    def read(self, size: int, position: int) -> bytes:
        return self.files.read(self.fd, size, position)

    def write(self, position: int, parts: list[Part]) -> None:
        self.files.write(self.fd, position, parts)

    def truncate(self, size: int) -> None:
        self.files.truncate(self.fd, size)

    def sync(self) -> None:
        self.files.sync(self.fd)


class FileSlice(Deferred):
    """Bytes [position, position + size) of an open file, read as they are sent. Keep it until then."""

    def __init__(self, directory: DirectoryState, handle: Handle, position: int, size: int) -> None:
        super().__init__(size)
        self.directory: Final = directory
        self.handle: Final = handle
        self.position: Final = position

    def read(self, start: i64, size: i64) -> bytes:
        try:
            data = self.handle.read(size, self.position + start)
        except OSError as error:
            raise self.directory.fail(f"reading {size} bytes at {self.position + start}", error) from error
        if len(data) < size:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the log was truncated while it was being sent")
        return data
