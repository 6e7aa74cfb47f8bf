"""Opens the logs in the directories of a manager at the start, and retries later if a log could not be opened.

Why a log may not open, and what happens then:

| cause                                    | the partition                                       | its directory |
|------------------------------------------|-----------------------------------------------------|---------------|
| no room on the disk, too many open files | is in `unreadable` until `load_missing` can open it | goes on       |
| a damaged file, a bug                    | is in `unreadable` until the next start             | goes on       |
| any other error of the disk              | is offline with its directory                       | is offline    |

Loading blocks; call it on worker threads. Another thread may call `stop` at any time: the loader finishes the logs it
is opening and opens no others, and the directory is not marked clean (see `directory`).
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Collection
from typing import TYPE_CHECKING

from ixion.broker.log.checkpoint import CLEANER_OFFSETS
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.broker.log.log_loader import open_log
from ixion.broker.log.names import DELETE, FUTURE, STRAY, PartitionFolder, marked_folder_name
from ixion.language.model.errors import KafkaError
from ixion.language.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from ixion.broker.log.manager import LogManager

logger = logging.getLogger(__name__)


class DirectoryLoader:
    def __init__(self, manager: LogManager, threads: int) -> None:
        self._manager = manager
        self._threads = threads
        self._running = threading.Lock()
        self._stopped = threading.Event()
        self._may_pass: set[str] = set()  # folders that failed to open for a temporary reason

    def run(self) -> None:
        """Opens every partition of every directory, unless `stop` is called first."""
        with self._running:
            for directory in self._manager.directories:
                if not self._stopped.is_set():
                    self._load_directory(directory)

    def _load_directory(self, directory: LogDirectory) -> None:
        manager = self._manager
        try:
            directory.begin()
            doomed = directory.folders_to_delete()
        except OSError as error:
            # Its logs are unknown, so the directory must not be treated as empty.
            directory.state.take_offline(f"reading {directory.path}: {error}")
            return
        manager.doomed_folders.add(doomed, manager.clock_ms())
        folders = list(directory.unloaded.items())
        if self._threads > 1 and not directory.was_clean and len(folders) > 1:
            with manager.make_pool(self._threads, "log-recovery") as pool:
                list(pool.map(lambda found: self._load(directory, *found), folders))
        else:
            for path, parsed in folders:
                self._load(directory, path, parsed)

    def load_missing(self) -> list[TopicPartition]:
        """Retries the folders that failed for a temporary reason; returns the partitions that are open now."""
        found: list[TopicPartition] = []
        if not self._may_pass:
            return found
        with self._running:
            for directory in self._manager.directories:
                for path, parsed in list(directory.unloaded.items()):
                    if path in self._may_pass and not directory.state.full and self._load(directory, path, parsed):
                        found.append((parsed.topic, parsed.partition))
        return found

    def delete(self, keys: Collection[TopicPartition]) -> None:
        """Marks folders that could not be opened for deletion, as `LogManager.delete` does with open logs.

        Otherwise a deleted partition would come back when there is room again. KafkaError if a rename fails. Blocks
        until no log is being opened.
        """
        manager = self._manager
        with manager.lock:
            if not any(directory.unloaded_keys() & set(keys) for directory in manager.directories):
                return
        with self._running:
            for directory in manager.directories:
                for path, parsed in list(directory.unloaded.items()):
                    if (parsed.topic, parsed.partition) in keys:
                        self._delete(directory, path, parsed)

    def _delete(self, directory: LogDirectory, path: str, parsed: PartitionFolder) -> None:
        manager, key = self._manager, (parsed.topic, parsed.partition)
        doomed = os.path.join(directory.path, marked_folder_name(*key, DELETE))
        try:
            manager.files.rename(path, doomed)
        except OSError as error:
            raise directory.state.fail(f"renaming {path} to {doomed}", error) from error
        with manager.lock:
            self._may_pass.discard(path)
            del directory.unloaded[path]
            if not parsed.mark:
                manager.unreadable.pop(key, None)
        delay_ms = manager.config_of(parsed.topic).file_delete_delay_ms
        manager.doomed_folders.add([doomed], manager.clock_ms() + delay_ms)
        logger.info("%s, which could not be loaded, is deleted with its partition", path)
        try:
            manager.files.sync_dir(directory.path)
        except OSError as error:
            raise directory.state.fail(f"syncing the new name of {path}", error) from error

    def stop(self) -> None:
        """Returns once no log is being opened, and none will be."""
        self._stopped.set()
        if self._running.locked():
            logger.info("the broker is stopping: it opens no further log")
        with self._running:
            pass

    def _load(self, directory: LogDirectory, path: str, parsed: PartitionFolder) -> bool:
        if directory.state.offline or self._stopped.is_set():
            return False
        manager = self._manager
        key = (parsed.topic, parsed.partition)
        config = manager.config_of(parsed.topic)
        try:
            log = open_log(
                directory=directory.state,
                folder=path,
                topic=parsed.topic,
                partition=parsed.partition,
                config=config,
                files=manager.files,
                clock_ms=manager.clock_ms,
                clean=directory.was_clean,
                recovery_point=directory.recovery_points.get(key, 0),
                log_start=directory.log_starts.get(key, 0),
                high_watermark=directory.high_watermarks.get(key, -1),
                compacted_to=directory.checkpointed(CLEANER_OFFSETS).get(key, 0),
            )
            # The log may end before a checkpoint: a truncation was interrupted, or recovery cut off damaged batches.
            directory.state.lower_checkpoints(parsed.topic, parsed.partition, log.end_offset)
        except Exception as error:
            if not directory.state.offline:
                self._note_failure(path, parsed, error)
            return False
        with manager.lock:
            self._may_pass.discard(path)
            directory.unloaded.pop(path, None)
            if not parsed.mark:
                manager.unreadable.pop(key, None)
            logs = manager.future_logs if parsed.mark == FUTURE else manager.logs
            other = logs.get(key)
            if other is not None and _progress(other) >= _progress(log):
                log, other = other, log
            logs[key] = log
        if other is not None:
            self._set_aside(other, log)
        return True

    def _note_failure(self, path: str, parsed: PartitionFolder, error: Exception) -> None:
        """Reports a partition that could not be opened; its directory stays in use."""
        name = f"{parsed.topic}-{parsed.partition}"
        if not isinstance(error, (KafkaError, CorruptFileError)):
            logger.error("loading %s failed", name, exc_info=error)
        with self._manager.lock:
            if isinstance(error, KafkaError):  # a disk error that did not take the directory offline
                self._may_pass.add(path)
            if parsed.mark == FUTURE:
                logger.error("%s, an unfinished copy, cannot be loaded: %s", path, error)
            else:
                logger.error("partition %s cannot be used: %s", name, error)
                self._manager.unreadable[parsed.topic, parsed.partition] = str(error)

    def _set_aside(self, log: Log, better: Log) -> None:
        """Removes one of two copies of a partition, which an interrupted move between directories leaves. If `better`
        has every record of `log`, `log` is deleted; otherwise it is kept as a stray folder."""
        old = log.folder
        is_copy = _has_all(better, log)
        log.abandon()
        try:
            log.move(os.path.join(log.directory.path, marked_folder_name(*_key(log), DELETE if is_copy else STRAY)))
        except KafkaError as error:
            logger.error(
                "%s is in two directories; %s is further on, %s stays: %s", log.name, better.folder, old, error
            )
            return
        logger.error(
            "%s is in two directories; %s is further on, %s becomes %s", log.name, better.folder, old, log.folder
        )
        if is_copy:
            manager = self._manager
            manager.doomed_folders.add([log.folder], manager.clock_ms() + log.config.file_delete_delay_ms)


def _key(log: Log) -> TopicPartition:
    return (log.topic, log.partition)


def _progress(log: Log) -> tuple[int, int, int]:
    """Sorts copies of a partition: by the latest leader epoch, then by the end offset.

    If both are equal, the later log start wins: the checkpoint with the log start of the other copy may be lost.
    """
    return (log.epochs.latest, log.end_offset, log.log_start)


def _has_all(better: Log, log: Log) -> bool:
    """Whether `better` has every record of `log`, or has deleted it: same topic id, and the epochs agree."""
    if log.topic_id is None or log.topic_id != better.topic_id:
        return False
    epoch, end = better.epochs.end_offset(log.epochs.latest, better.end_offset)
    return not log.size or (epoch == log.epochs.latest and end >= log.end_offset)
