"""A log directory as the logs in it see it: a path, and whether its disk can be trusted.

An I/O error takes the whole directory offline: every log in it answers KAFKA_STORAGE_ERROR from then on, and whoever
runs the broker moves the leaders elsewhere. A disk that is merely too full is guarded before it fails: appends are
refused with the same, retriable code, reads go on, and all is well again when there is room. The same happens when it
fills up before the guard has seen it: an append that found no room has left nothing behind.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable

from ixion.model.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)


class Home:
    def __init__(self, path: str, on_offline: Callable[[str, str], None] | None = None) -> None:
        self.path = path
        self.offline = False
        self.full = False  # kept by the disk guard
        self.reason = ""
        self._on_offline = on_offline

    def fail(self, doing: str, error: OSError) -> KafkaError:
        """Takes the directory offline; gives the error to raise to the caller.

        That the process has too many files open is no fault of the disk: the one request fails, and that is all.
        """
        reason = f"{doing} in {self.path}: {error}"
        if not self.offline and error.errno not in (errno.EMFILE, errno.ENFILE):
            self.offline = True
            self.reason = reason
            logger.error("log directory %s goes offline: %s", self.path, reason)
            if self._on_offline is not None:
                self._on_offline(self.path, reason)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason)

    def refuse(self, doing: str, error: OSError) -> KafkaError:
        """An append failed. If there was only no room for it, the directory waits for room instead of going offline."""
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return self.fail(doing, error)
        if not self.full:
            self.full = True
            logger.error("the disk of %s is full: %s; appends are refused", self.path, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{doing} in {self.path}: {error}")

    def check_readable(self) -> None:
        if self.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"log directory is offline: {self.reason}")

    def check_writable(self) -> None:
        self.check_readable()
        if self.full:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {self.path} is almost full; it takes reads only"
            )
