"""One log directory: its lock, its meta.properties, its checkpoints, the partition folders in it.

It also tracks which logs this run has not loaded, for two reasons. The directory is marked clean only if every log in
it was loaded, recovered and closed in this run. And a checkpoint keeps the old offsets of logs that were not loaded, so
that an interrupted start does not lose them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final

from ixion.broker.log import checkpoint
from ixion.broker.log.checkpoint import Offsets
from ixion.broker.log.clean_shutdown import has_marker, take_marker, write_marker
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.files import Files
from ixion.broker.log.lock import DirectoryLock
from ixion.broker.log.meta_properties import FILE_NAME as META_PROPERTIES
from ixion.broker.log.meta_properties import MetaProperties, read_meta_properties, write_meta_properties
from ixion.broker.log.names import DELETE, FUTURE, PartitionFolder, parse_folder_name
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

# Apache Kafka with KRaft keeps its metadata log in the same directory; it is not a topic.
_METADATA_TOPIC: Final = "__cluster_metadata"
_NAMES: Final = (
    checkpoint.LOG_STARTS,
    checkpoint.RECOVERY_POINTS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.CLEANER_OFFSETS,
)


class LogDirectory:
    def __init__(self, path: str, files: Files, on_offline: Callable[[str, str], None] | None = None) -> None:
        """Creates the directory if it is missing, and locks it (DirectoryLockedError if another broker uses it)."""
        self.path = os.path.abspath(path)
        self.files = files
        if not os.path.isdir(self.path):
            files.make_dir(self.path)
            files.sync_dir(os.path.dirname(self.path))
        self._lock = DirectoryLock(self.path)
        self.state = DirectoryState(self.path, on_offline)
        self.was_clean = False
        self.recovery_points: Offsets = {}
        self.high_watermarks: Offsets = {}
        self.log_starts: Offsets = {}
        self.unloaded: dict[str, PartitionFolder] = {}  # by path: folders that this run has not loaded
        self.unclosed = False  # a log could not be closed cleanly
        self._begun = False
        self._on_disk: dict[str, Offsets] = {}  # by name of the checkpoint file
        self._doubtful: set[str] = set()  # files whose last write failed: they may be old or new

    def begin(self) -> None:
        """Reads the checkpoints and lists the folders, then deletes the clean-shutdown marker. From here on a crash
        counts as unclean."""
        clean = has_marker(self.path)
        trusted = self._read_checkpoints()
        self.unloaded = dict(self.folders())
        if clean:
            take_marker(self.files, self.path)
        self.was_clean = clean and trusted
        self._begun = True

    def _read_checkpoints(self) -> bool:
        """False if the file of recovery points is damaged."""
        points = self._read(checkpoint.RECOVERY_POINTS, "every log is recovered from its beginning")
        self.recovery_points = points or {}
        self.high_watermarks = self._read(checkpoint.HIGH_WATERMARKS, "high watermarks start at the log start") or {}
        self.log_starts = self._read(checkpoint.LOG_STARTS, "logs start with their first segment") or {}
        self._read(checkpoint.CLEANER_OFFSETS, "compaction starts at the beginning of every log")
        return points is not None

    def _read(self, name: str, consequence: str) -> Offsets | None:
        """None if the file is damaged."""
        try:
            offsets = checkpoint.read_offsets(self.files, os.path.join(self.path, name))
        except CorruptFileError as error:
            logger.warning("%s; %s", error, consequence)
            self._doubtful.add(name)
            return None
        self._on_disk[name] = offsets
        return offsets

    def checkpointed(self, name: str) -> Offsets:
        """The offsets in a checkpoint file; do not change the result."""
        return self._on_disk.get(name, {})

    def folders(self) -> list[tuple[str, PartitionFolder]]:
        """(path, parsed name) of the folders in use and of future ones."""
        return [(path, parsed) for path, parsed in self._partition_folders() if parsed.mark in ("", FUTURE)]

    def folders_to_delete(self) -> list[str]:
        return [path for path, parsed in self._partition_folders() if parsed.mark == DELETE]

    def _partition_folders(self) -> list[tuple[str, PartitionFolder]]:
        found = []
        for entry in self.files.list_dir(self.path):
            if entry.is_dir(follow_symlinks=True):
                parsed = parse_folder_name(entry.name)
                if parsed is None:
                    logger.warning("ignoring %s: not a partition folder", entry.path)
                elif parsed.topic != _METADATA_TOPIC:
                    found.append((entry.path, parsed))
        return sorted(found, key=lambda pair: pair[0])

    def meta_properties(self) -> MetaProperties | None:
        return read_meta_properties(os.path.join(self.path, META_PROPERTIES))

    def set_meta_properties(self, meta: MetaProperties) -> None:
        write_meta_properties(self.files, os.path.join(self.path, META_PROPERTIES), meta)

    def unloaded_keys(self) -> set[TopicPartition]:
        """The caller holds the manager's lock: under it, a loaded log moves from `unloaded` to the manager's map."""
        return {(folder.topic, folder.partition) for folder in self.unloaded.values()}

    def write_checkpoint(self, name: str, offsets: Offsets, missing: set[TopicPartition]) -> None:
        """Replaces a checkpoint file, unless it has the same offsets already.

        Logs in `missing` keep their entry: they were not loaded when the offsets were collected.
        """
        if self.state.offline or not self._begun:
            return
        if missing:
            kept = {key: offset for key, offset in self.checkpointed(name).items() if key in missing}
            offsets = kept | offsets
        if name not in self._doubtful and self._on_disk.get(name) == offsets:
            return
        try:
            checkpoint.write_offsets(self.files, os.path.join(self.path, name), offsets)
        except BaseException as error:
            self._doubtful.add(name)
            if isinstance(error, OSError):
                raise self.state.fail(f"writing {name}", error) from error
            raise
        self._doubtful.discard(name)
        self._on_disk[name] = dict(offsets)

    def lower_checkpoints(self, key: TopicPartition, end: int) -> None:
        """Lowers the checkpointed offsets of a log to its new end. KafkaError if that cannot be written.

        Otherwise new records at the old offsets would count as flushed, committed, deleted or compacted.
        """
        for name in _NAMES:
            offsets = self.checkpointed(name)
            offset = offsets.get(key, 0)
            if offset > end or name in self._doubtful:
                self.write_checkpoint(name, offsets | {key: min(offset, end)}, set())

    def remembers(self, key: TopicPartition) -> bool:
        """Whether a checkpoint file has, or may have, an offset of this partition."""
        return any(name in self._doubtful or key in self.checkpointed(name) for name in _NAMES)

    def forget(self, key: TopicPartition) -> None:
        """Removes a partition from every checkpoint file. KafkaError if that cannot be written."""
        for name in _NAMES:
            offsets = self.checkpointed(name)
            if name in self._doubtful or key in offsets:
                self.write_checkpoint(name, {other: offsets[other] for other in offsets if other != key}, set())

    def end(self, broker_epoch: int) -> None:
        """The last step of a stop: marks the directory clean if every log in it was loaded and closed."""
        if self.state.offline or not self._begun:
            return
        if self.unloaded or self.unclosed:
            reason = f"{len(self.unloaded)} logs were not loaded" if self.unloaded else "a log could not be closed"
            logger.warning("%s: %s, so the next start recovers its logs", self.path, reason)
            return
        write_marker(self.files, self.path, broker_epoch)

    def release(self) -> None:
        self._lock.release()
