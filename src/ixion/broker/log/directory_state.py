"""The state of a log directory that its logs share: online, full or offline.

How an error of the disk changes it:

| error                                   | the directory |
|---|---|
| no room (ENOSPC, EDQUOT)                | is full: writes are refused, reads go on, until the disk guard finds room |
| too many open files (EMFILE, ENFILE)    | does not change: the disk is fine; only this operation fails |
| any other (EIO, EROFS, ...)             | goes offline, with every log in it; the broker moves the leaders elsewhere |

In each case the caller gets KAFKA_STORAGE_ERROR, which clients retry. A nearly full disk counts as full before a write
fails; see `disk_guard`.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import Final

from ixion.language.model.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
TOO_MANY_FILES: Final = (errno.EMFILE, errno.ENFILE)


def _no_checkpoints(_topic: str, _partition: int, _end: int) -> None:
    """For a directory without a manager, which has no checkpoints."""


class DirectoryState:
    def __init__(self, path: str, on_offline: Callable[[str, str], None] | None = None) -> None:
        self.path = path
        self.offline = False
        self.full = False  # set here or by the disk guard, cleared by the disk guard
        self.stopping = False  # the broker is stopping: compactions give up
        self.reason = ""
        self._on_offline = on_offline
        # (topic, partition, end): lowers the checkpoints of a truncated log to its end. Blocks.
        self.lower_checkpoints: Callable[[str, int, int], None] = _no_checkpoints

    def fail(self, doing: str, error: OSError) -> KafkaError:
        """Changes the state according to the error; returns the KafkaError to raise."""
        reason = f"{doing} in {self.path}: {error}"
        if error.errno in NO_ROOM:
            if not self.full:
                self.full = True
                logger.error("the disk of %s is full: %s; writes are refused", self.path, reason)
        elif error.errno not in TOO_MANY_FILES:
            self.take_offline(reason)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    def take_offline(self, reason: str) -> None:
        if not self.offline:
            self.offline = True
            self.reason = reason
            logger.error("log directory %s goes offline: %s", self.path, reason)
            if self._on_offline is not None:
                self._on_offline(self.path, reason)

    def check_readable(self) -> None:
        if self.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory is offline: {self.reason}")

    def check_writable(self) -> None:
        self.check_readable()
        if self.full:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {self.path} is almost full; it can only be read"
            )
