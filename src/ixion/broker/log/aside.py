"""Keeps files, and ends of files, that recovery took out of a log, under another name in the same folder.

    aside-00000000000000000042.log.0.1700000000000         a whole file, set aside at this time (milliseconds)
    aside-00000000000000000042.log.8192.1700000000000      its end, from byte 8192 on

An operator may inspect them. Apache Kafka and ixion ignore such names when they load a log: the name has no suffix of a
log file, and does not start with an offset.

Retention deletes these files after `KEPT_MS`, and at once while the disk is full.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Callable
from typing import Final

from ixion.broker.log.files import Files
from ixion.broker.log.handle import Handle

logger = logging.getLogger(__name__)

KEPT_MS: Final = 30 * 24 * 60 * 60 * 1000
PIECE: Final = 1 << 20

_NAME = re.compile(r"aside-.+\.[0-9]+\.([0-9]+)")


class Aside:
    def __init__(self, files: Files, folder: str, clock_ms: Callable[[], int]) -> None:
        self._files = files
        self._folder = folder
        self._clock_ms = clock_ms
        self.names: list[str] = []
        self.has_taken = False  # something was taken out of the log since it was opened

    def find(self, names: list[str]) -> None:
        """Finds the files of earlier recoveries among the names of all files in the folder."""
        self.names = sorted(name for name in names if _NAME.fullmatch(name))

    def move(self, folder: str) -> None:
        self._folder = folder

    def keep_file(self, path: str, why: str) -> None:
        """Sets a whole file aside by renaming it; a missing file is no error."""
        if os.path.exists(path):
            self.has_taken = True
            name = self._new_name(path, 0)
            self._files.rename(path, os.path.join(self._folder, name))
            self.names.append(name)
            logger.warning("%s is set aside as %s: %s", path, name, why)

    def keep_end(self, handle: Handle, path: str, start: int, end: int, torn: bool) -> None:
        """Copies bytes [start, end) of a file, durably, so that the caller can cut them off. Skips zeros.

        `torn`: they are the beginning of one batch, which cannot be read. If the disk is full, they are not kept.
        """
        self.has_taken = True
        if self._is_empty(handle, start, end):
            return
        name = self._new_name(path, start)
        try:
            self._copy(handle, start, end, os.path.join(self._folder, name))
        except OSError as error:
            if not torn or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            logger.warning("the torn batch at the end of %s is not set aside: %s", path, error)
            return
        self.names.append(name)
        logger.warning("%s: the %d bytes from byte %d on are set aside as %s", path, end - start, start, name)

    def drop_due(self, now_ms: int, all_of_them: bool) -> None:
        """Deletes the files that were set aside `KEPT_MS` ago, or all of them."""
        for name in list(self.names):
            found = _NAME.fullmatch(name)
            if all_of_them or found is None or now_ms - int(found[1]) >= KEPT_MS:
                logger.warning("deleting %s in %s, which recovery had set aside", name, self._folder)
                self._files.remove(os.path.join(self._folder, name))
                self.names.remove(name)

    def _new_name(self, path: str, position: int) -> str:
        now_ms = self._clock_ms()
        while True:
            name = f"aside-{os.path.basename(path)}.{position}.{now_ms}"
            if name not in self.names:
                return name
            now_ms += 1

    def _is_empty(self, handle: Handle, start: int, end: int) -> bool:
        while start < end:
            piece = handle.read(min(PIECE, end - start), start)
            if not piece:
                return True
            if piece.count(0) < len(piece):
                return False
            start += len(piece)
        return True

    def _copy(self, handle: Handle, start: int, end: int, path: str) -> None:
        copy = Handle(self._files, self._files.open(path))
        try:
            at = start
            while at < end:
                piece = handle.read(min(PIECE, end - at), at)
                if not piece:
                    break
                copy.write(at - start, [piece])
                at += len(piece)
            copy.sync()
            self._files.sync_dir(self._folder)
        except OSError:
            self._files.remove(path)
            raise
