"""Deletes folders of partitions that are no longer in use, after file.delete.delay.ms or at the next start.

Deleting blocks; call it on worker threads.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from ixion.broker.log.files import Files

logger = logging.getLogger(__name__)

RETRY_MS: Final = 60_000  # between two attempts to delete a folder


class DoomedFolders:
    def __init__(self, files: Files, clock_ms: Callable[[], int]) -> None:
        self._files = files
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._folders: list[tuple[int, str]] = []  # (when to delete, path)

    def add(self, paths: list[str], when_ms: int) -> None:
        with self._lock:
            self._folders += [(when_ms, path) for path in paths]

    def delete_due(self, now_ms: int) -> None:
        with self._lock:
            due = [path for when, path in self._folders if when <= now_ms]
            self._folders = [entry for entry in self._folders if entry[0] > now_ms]
        for path in due:
            self.delete(path)

    def delete(self, path: str) -> None:
        """Deletes a folder; if that fails, a later `delete_due` retries."""
        try:
            self._files.remove_tree(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            logger.error("%s cannot be deleted: %s", path, error)
            self.add([path], self._clock_ms() + RETRY_MS)
