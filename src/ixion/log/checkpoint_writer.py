"""Writes the offsets of all logs into the checkpoint files of their directories.

One thread at a time collects offsets and writes them: of two that came from different threads, the later one must be
what stays. No log is created meanwhile. Lock order: this one, then the manager's and those of logs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.log import checkpoint
from ixion.log.checkpoint import Offsets
from ixion.log.directory import LogDirectory
from ixion.log.log import Log
from ixion.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.log.manager import LogManager

logger = logging.getLogger(__name__)


class CheckpointWriter:
    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self.lock = threading.RLock()

    def write_recovery_points(self) -> None:
        self._write(checkpoint.RECOVERY_POINTS, lambda log: log.recovery_point)

    def write_high_watermarks(self) -> None:
        self._write(checkpoint.HIGH_WATERMARKS, lambda log: log.high_watermark)

    def write_log_starts(self) -> None:
        """Only starts that lie within a segment; the names of the segments show the others."""
        self._write(checkpoint.LOG_STARTS, _start_within_segment)

    def write_all(self) -> None:
        self.write_recovery_points()
        self.write_high_watermarks()
        self.write_log_starts()

    def _write(self, name: str, offset_of: Callable[[Log], int]) -> None:
        manager = self._manager
        with self.lock:
            with manager.lock:
                # In one step: a log that is being loaded is in one of the two, or its entry would be lost.
                logs = [*manager.future_logs.values(), *manager.logs.values()]
                unloaded = [directory.unloaded_keys() for directory in manager.directories]
            for directory, missing in zip(manager.directories, unloaded, strict=True):
                offsets: Offsets = {}
                for log in logs:
                    if log.directory is directory.state:
                        offset = offset_of(log)
                        if offset >= 0:
                            offsets[log.topic, log.partition] = offset
                was_full = directory.state.full
                try:
                    directory.write_checkpoint(name, offsets, missing)
                except KafkaError as error:
                    if not was_full:  # else it was logged before, and is tried again and again
                        logger.error("%s", error)

    def write_cleaner_offset(self, log: Log, offset: int) -> None:
        """A compaction has come to `offset`. KafkaError if that cannot be written."""
        manager = self._manager
        with self.lock:
            for directory in manager.directories:
                if directory.state is log.directory:
                    with manager.lock:
                        known = {*manager.logs, *directory.unloaded_keys()}
                    cleaned = directory.checkpointed(checkpoint.CLEANER_OFFSETS)
                    offsets = {key: cleaned[key] for key in cleaned if key in known}
                    # A truncation may have come between. One that comes now lowers what is written here.
                    offsets[log.topic, log.partition] = min(offset, log.end_offset)
                    directory.write_checkpoint(checkpoint.CLEANER_OFFSETS, offsets, set())

    def lower(self, directory: LogDirectory, topic: str, partition: int, end: int) -> None:
        """A log was truncated to `end`, or recovery found it to end there. KafkaError if a checkpoint stays beyond."""
        with self.lock:
            directory.lower_checkpoints((topic, partition), end)

    def forget(self, topic: str, partition: int) -> None:
        """An earlier partition of this name was deleted. If its log start were found after a crash, the new one would
        seem to end before it begins, and all of it would go."""
        for directory in self._manager.directories:
            if directory.remembers((topic, partition)):
                try:
                    with self.lock:
                        directory.forget((topic, partition))
                except KafkaError as error:
                    logger.error("%s", error)  # `create` makes the log in another directory, or refuses


def _start_within_segment(log: Log) -> int:
    """The log start if it lies within a segment; -1 if a file name says it."""
    with log.lock:
        return log.log_start if log.log_start > log.segments.first.base_offset else -1
