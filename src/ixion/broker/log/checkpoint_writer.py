"""Writes the offsets of all logs into the checkpoint files of their directories.

One thread at a time collects offsets and writes them, so that older offsets never replace newer ones. No log is created
meanwhile. Lock order: this lock, then the manager's or a log's.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.broker.log import checkpoint
from ixion.broker.log.checkpoint import Offsets
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.broker.log.manager import LogManager

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
        """Only log starts inside a segment; any other is the base offset of the first segment."""
        self._write(checkpoint.LOG_STARTS, _start_within_segment)

    def write_all(self) -> None:
        self.write_recovery_points()
        self.write_high_watermarks()
        self.write_log_starts()

    def _write(self, name: str, offset_of: Callable[[Log], int]) -> None:
        manager = self._manager
        with self.lock:
            with manager.lock:
                # Both under one lock: a log that is being loaded is in one of them, or its entry would be lost.
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
                    if not was_full:  # log it once, not at every retry
                        logger.error("%s", error)

    def write_cleaner_offset(self, log: Log, offset: int) -> None:
        """Stores that the log is compacted up to `offset`. KafkaError if that cannot be written."""
        manager = self._manager
        with self.lock:
            for directory in manager.directories:
                if directory.state is log.directory:
                    with manager.lock:
                        known = {*manager.logs, *directory.unloaded_keys()}
                    cleaned = directory.checkpointed(checkpoint.CLEANER_OFFSETS)
                    offsets = {key: cleaned[key] for key in cleaned if key in known}
                    # The log may have been truncated meanwhile. A later truncation lowers this entry.
                    offsets[log.topic, log.partition] = min(offset, log.end_offset)
                    directory.write_checkpoint(checkpoint.CLEANER_OFFSETS, offsets, set())

    def lower(self, directory: LogDirectory, topic: str, partition: int, end: int) -> None:
        """Lowers the checkpoints of a log that now ends at `end`. KafkaError if a checkpoint stays beyond it."""
        with self.lock:
            directory.lower_checkpoints((topic, partition), end)

    def forget(self, topic: str, partition: int) -> None:
        """Removes the offsets of a deleted partition of this name. After a crash, its old log start would make the new
        log seem to end before its start, and recovery would drop all records."""
        for directory in self._manager.directories:
            if directory.remembers((topic, partition)):
                try:
                    with self.lock:
                        directory.forget((topic, partition))
                except KafkaError as error:
                    logger.error("%s", error)  # `create` makes the log in another directory, or refuses


def _start_within_segment(log: Log) -> int:
    """The log start if it lies inside a segment; -1 if it is the base offset of the first segment."""
    with log.lock:
        return log.log_start if log.log_start > log.segments.first.base_offset else -1
