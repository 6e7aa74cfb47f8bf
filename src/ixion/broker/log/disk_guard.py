"""Refuses appends while a disk is nearly full, before a write fails.

Below `low_bytes` of free space a directory refuses appends; reads, retention and deletion go on. It accepts appends
again once 1.25 times `low_bytes` are free, so that it does not switch back and forth. On a small disk the limit is a
twentieth of the disk. A disk without free inodes counts as full: no file can be created on it.

    1 TB disk, low_bytes 128 MiB      refuses below 128 MiB, resumes at 160 MiB
    100 MiB volume of a container     refuses below   5 MiB, resumes at 6.25 MiB
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final

from ixion.broker.log.directory_state import DirectoryState

logger = logging.getLogger(__name__)


SMALL_DISK_SHARE: Final = 20  # the limit is at most one 20th of the disk


def free_and_total(path: str) -> tuple[int, int]:
    """Free bytes, and the size of the disk."""
    status = os.statvfs(path)
    free = 0 if status.f_files and not status.f_favail else status.f_bavail * status.f_frsize
    return free, status.f_blocks * status.f_frsize


class DiskGuard:
    def __init__(self, low_bytes: int, space: Callable[[str], tuple[int, int]] = free_and_total) -> None:
        self.low_bytes = low_bytes
        self._space = space

    def check(self, directory: DirectoryState) -> None:
        """Marks the directory full or not full. Costs one statvfs."""
        if directory.offline:
            return
        try:
            free, total = self._space(directory.path)
        except OSError as error:
            directory.fail("reading the free space", error)
            return
        low = min(self.low_bytes, total // SMALL_DISK_SHARE)
        if not directory.full and free < low:
            directory.full = True
            logger.error("%s has %d bytes free, less than %d: appends are refused", directory.path, free, low)
        elif directory.full and free >= low * 5 // 4:
            directory.full = False
            logger.warning("%s has %d bytes free again: appends go on", directory.path, free)
