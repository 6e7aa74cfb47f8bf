"""The low-water mark of a disk: appends stop while it is nearly full, before a write fails and takes it offline.

Below `low_bytes` of free space a directory takes no more appends; reads, retention and deletion go on. It takes them
again once `resume_bytes` are free, by default a quarter more, so that it does not flutter at the mark.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from ixion.log.home import Home

logger = logging.getLogger(__name__)


def free_bytes(path: str) -> int:
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


class DiskGuard:
    def __init__(
        self, low_bytes: int, resume_bytes: int | None = None, free: Callable[[str], int] = free_bytes
    ) -> None:
        self.low_bytes = low_bytes
        self.resume_bytes = max(low_bytes, low_bytes * 5 // 4 if resume_bytes is None else resume_bytes)
        self._free = free

    def check(self, home: Home) -> None:
        """Looks at the disk and opens or shuts the directory for appends. Costs one statvfs."""
        if home.offline:
            return
        try:
            free = self._free(home.path)
        except OSError as error:
            home.fail("looking for free space", error)
            return
        if not home.full and free < self.low_bytes:
            home.full = True
            logger.error("%s has %d bytes free, less than %d: appends are refused", home.path, free, self.low_bytes)
        elif home.full and free >= self.resume_bytes:
            home.full = False
            logger.warning("%s has %d bytes free again: appends go on", home.path, free)
