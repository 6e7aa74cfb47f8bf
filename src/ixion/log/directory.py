"""One log directory: its lock, its papers, its checkpoints, the partition folders in it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from ixion.log import checkpoint
from ixion.log.checkpoint import Offsets
from ixion.log.clean_shutdown import take_marker, write_marker
from ixion.log.corrupt import CorruptFileError
from ixion.log.files import Files
from ixion.log.home import Home
from ixion.log.lock import DirectoryLock
from ixion.log.meta_properties import FILE_NAME as META_PROPERTIES
from ixion.log.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from ixion.log.names import DELETE, FUTURE, PartitionFolder, parse_folder_name
from ixion.model.errors import KafkaError

logger = logging.getLogger(__name__)

# KRaft's own log lives in the same directory under Apache Kafka; it is not a topic.
_METADATA_TOPIC = "__cluster_metadata"


class LogDirectory:
    def __init__(self, path: str, files: Files, on_offline: Callable[[str, str], None] | None = None) -> None:
        """Makes the directory if there is none, and locks it (DirectoryLockedError if another broker has it)."""
        self.path = os.path.abspath(path)
        self.files = files
        files.make_dir(self.path)
        self._lock = DirectoryLock(self.path)
        self.home = Home(self.path, on_offline)
        self.was_clean = False
        self.recovery_points: Offsets = {}
        self.high_watermarks: Offsets = {}
        self.log_starts: Offsets = {}
        self._written: dict[str, Offsets] = {}

    def begin(self) -> None:
        """Reads the checkpoints and takes the clean-shutdown marker away: from here on a crash is a crash."""
        self.was_clean = take_marker(self.files, self.path)
        self.recovery_points = self._read(checkpoint.RECOVERY_POINTS, "every log is recovered from its beginning")
        self.high_watermarks = self._read(checkpoint.HIGH_WATERMARKS, "high watermarks start at the log start")
        self.log_starts = self._read(checkpoint.LOG_STARTS, "logs start with their first segment")

    def _read(self, name: str, consequence: str) -> Offsets:
        try:
            return checkpoint.read_offsets(os.path.join(self.path, name))
        except CorruptFileError as error:
            logger.warning("%s; %s", error, consequence)
            if name == checkpoint.RECOVERY_POINTS:
                self.was_clean = False
            return {}

    def folders(self) -> list[tuple[str, PartitionFolder]]:
        """(path, what its name says) of the partitions in use and of future ones."""
        return [(path, parsed) for path, parsed in self._partition_folders() if parsed.mark in ("", FUTURE)]

    def folders_to_delete(self) -> list[str]:
        return [path for path, parsed in self._partition_folders() if parsed.mark == DELETE]

    def _partition_folders(self) -> list[tuple[str, PartitionFolder]]:
        found = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=True):
                    parsed = parse_folder_name(entry.name)
                    if parsed is None:
                        logger.warning("%s is not a partition folder; it is left alone", entry.path)
                    elif parsed.topic != _METADATA_TOPIC:
                        found.append((entry.path, parsed))
        return sorted(found, key=lambda pair: pair[0])

    def meta_properties(self) -> MetaProperties | None:
        return read_meta_properties(os.path.join(self.path, META_PROPERTIES))

    def set_meta_properties(self, meta: MetaProperties) -> None:
        write_meta_properties(self.files, os.path.join(self.path, META_PROPERTIES), meta)

    def write_checkpoint(self, name: str, offsets: Offsets) -> None:
        """Replaces a checkpoint file, unless it holds just this already."""
        if self.home.offline or self._written.get(name) == offsets:
            return
        try:
            checkpoint.write_offsets(self.files, os.path.join(self.path, name), offsets)
        except OSError as error:
            raise self.home.fail(f"writing {name}", error) from error
        self._written[name] = dict(offsets)

    def remembers(self, key: tuple[str, int]) -> bool:
        """Whether a checkpoint file has an offset of this partition."""
        return any(key in offsets for _, offsets in self._on_disk())

    def forget(self, key: tuple[str, int]) -> None:
        for name, offsets in self._on_disk():
            if key in offsets:
                try:
                    self.write_checkpoint(name, {other: offsets[other] for other in offsets if other != key})
                except KafkaError as error:
                    logger.error("%s", error)  # and the directory is offline

    def _on_disk(self) -> list[tuple[str, Offsets]]:
        found = (
            (checkpoint.LOG_STARTS, self.log_starts),
            (checkpoint.RECOVERY_POINTS, self.recovery_points),
            (checkpoint.HIGH_WATERMARKS, self.high_watermarks),
        )
        return [(name, self._written.get(name, as_read)) for name, as_read in found]

    def end(self, broker_epoch: int) -> None:
        """The last step of a clean stop: every log of this directory is closed."""
        if not self.home.offline:
            write_marker(self.files, self.path, broker_epoch)

    def release(self) -> None:
        self._lock.release()
