"""All logs of a broker, over its log directories: load, create, delete, look after, close.

If a directory fails, it goes offline and its logs leave the manager; the other directories stay in use. A partition
whose folder cannot be loaded is listed in `unreadable`, with the reason; the others are loaded.

Threads. `load`, `look_after`, `flush_due` and `close` block; call them on worker threads. `get` does not block.
`create` syncs the directory of a new log. One lock guards the map of logs; each log has its own. Lock order: a log's
`replacing`, its `lock`, the manager's.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from ixion.broker.log.checkpoint_writer import CheckpointWriter
from ixion.broker.log.config import LogConfig
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.directory_loader import DirectoryLoader
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.doomed_folders import DoomedFolders
from ixion.broker.log.files import Files
from ixion.broker.log.flushing import flush_if_due
from ixion.broker.log.log import Log
from ixion.broker.log.log_loader import open_log
from ixion.broker.log.names import DELETE, STRAY, folder_name, marked_folder_name
from ixion.broker.log.partition_logs import PartitionLogs
from ixion.broker.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from ixion.broker.log.partition_metadata import write_topic_id
from ixion.broker.log.retention import delete_doomed, retain
from ixion.broker.log.together import for_each
from ixion.language.model.complaints import Complaints
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.ids import id_text
from ixion.language.model.pools import MakePool, threads
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

MANY: Final = 64  # logs; several threads close this many, because each close waits for the disk a few times
MOST_PREFERENCES: Final = 10_000  # bounded, because a client can prefer a directory for partitions that never exist


class LogManager:
    def __init__(
        self,
        paths: list[str],
        *,
        clock_ms: Callable[[], int],
        config_of: Callable[[str], LogConfig] = lambda _topic: LogConfig(),
        files: Files | None = None,
        recovery_threads: int = 1,
        on_offline: Callable[[str], None] | None = None,
        make_pool: MakePool = threads,
    ) -> None:
        """Locks every directory; `load` opens the logs. `config_of` returns the settings of a topic."""
        self.files = files if files is not None else Files()
        self.clock_ms = clock_ms
        self.config_of = config_of
        self.make_pool = make_pool
        self.logs: dict[TopicPartition, Log] = {}
        self.future_logs: dict[TopicPartition, Log] = {}
        self.replaced: dict[TopicPartition, Log] = {}  # by moves; their folders still have the names of logs in use
        self.unreadable: dict[TopicPartition, str] = {}
        self.lost: set[TopicPartition] = set()  # logs whose directory has failed in this life
        self._preferred: dict[TopicPartition, LogDirectory] = {}  # directories of logs that do not exist yet
        self._counts: dict[DirectoryState, int] = {}  # logs in each directory, recounted from time to time
        self._recount_in = 0  # new logs until the next recount
        self._on_offline = on_offline
        self._complaints = Complaints(logger)
        self._closed = False
        self._left_behind: set[DirectoryState] = set()  # directories with a log that was not closed cleanly
        self._unsynced: set[str] = set()  # new folders whose names may not be on the disk yet
        self.lock = threading.RLock()  # reentrant: if making a log fails, `_went_offline` takes it again
        self.doomed_folders = DoomedFolders(self.files, clock_ms)
        self.directories: list[LogDirectory] = []
        self.checkpoints = CheckpointWriter(self)
        self._loading = DirectoryLoader(self, recovery_threads)
        try:
            for path in paths:
                directory = LogDirectory(path, self.files, self._went_offline)
                directory.state.lower_checkpoints = partial(self.checkpoints.lower, directory)
                self.directories.append(directory)
        except BaseException:
            for directory in self.directories:
                directory.release()
            raise

    # Loading.

    def load(self) -> None:
        """Opens every partition of every directory."""
        self._loading.run()

    def load_missing(self) -> list[TopicPartition]:
        """Opens partitions that failed before on a full disk or without file descriptors; returns them. Blocks."""
        return self._loading.load_missing()

    def interrupt(self) -> None:
        """When the broker stops: ends compactions and loading. Blocks until no log is being opened."""
        for directory in self.directories:
            directory.state.stopping = True
        self._loading.stop()

    # One log.

    def get(self, topic: str, partition: int) -> Log | None:
        return self.logs.get((topic, partition))

    def of(self, topic: str, partition: int) -> PartitionLogs:
        """All logs of a partition, to change them together."""
        return PartitionLogs(self, topic, partition)

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes | None = None,
        directory: LogDirectory | None = None,
        config: LogConfig | None = None,
    ) -> Log:
        """The log of a partition; a new one is made in `directory`, or in the directory with the fewest logs.

        `config` is for a topic that `config_of` does not know yet.
        """
        key = (topic, partition)
        log = self.logs.get(key)
        if log is None:
            log = self._create(key, directory, config)
        if topic_id is not None:
            self.set_topic_id(log, topic_id)
        self._sync_name(log)
        return log

    def is_made(self, topic: str, partition: int, topic_id: bytes) -> bool:
        """Whether `create` would have nothing to do, and no log of the partition may be offline."""
        log = self.logs.get((topic, partition))
        if log is None or log.topic_id != topic_id or log.folder in self._unsynced:
            return False
        return self.of(topic, partition).is_complete

    def _create(self, key: TopicPartition, directory: LogDirectory | None, config: LogConfig | None) -> Log:
        # Wait for a checkpoint in progress: it may contain offsets of a deleted log of this name.
        with self.checkpoints.lock:
            if key not in self.logs and key not in self.unreadable:
                self.checkpoints.forget(*key)
            with self.lock:
                log = self.logs.get(key)
                if log is not None:
                    return log
                if key in self.unreadable:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.unreadable[key])
                where = directory or self._preferred.get(key)
                if where is None or where.state.offline:
                    where = self._least_used()
                where.state.check_writable()
                name = folder_name(*key)
                if where.remembers(key):
                    raise KafkaError(
                        ErrorCode.KAFKA_STORAGE_ERROR,
                        f"the checkpoints in {where.path} still have offsets of a deleted {name} and cannot be written",
                    )
                folder = os.path.join(where.path, name)
                if os.path.isdir(folder):
                    self.set_leftover_aside(where, folder, key)
                settings = self.config_of(key[0]) if config is None else config
                log = self.make(where, folder, key, settings)
                self._unsynced.add(folder)
                self.logs[key] = log
                if config is None and (newest := self.config_of(key[0])) != settings:
                    log.reconfigure(newest)  # `reconfigure` on another thread did not see this log yet
                self._counts[where.state] = self._counts.get(where.state, 0) + 1
                self._preferred.pop(key, None)
                return log

    def make(self, where: LogDirectory, folder: str, key: TopicPartition, config: LogConfig) -> Log:
        """A new log in a new folder. If that fails halfway, the folder is deleted."""
        try:
            return open_log(
                directory=where.state,
                folder=folder,
                topic=key[0],
                partition=key[1],
                config=config,
                files=self.files,
                clock_ms=self.clock_ms,
            )
        except KafkaError:
            try:
                self.files.remove_tree(folder)
            except OSError:
                pass  # a later `create` sets the folder aside; a start finds an empty log
            raise

    def set_leftover_aside(self, where: LogDirectory, folder: str, key: TopicPartition) -> None:
        """Renames a leftover folder that has the name of a new log: its log was deleted and the rename failed, or
        making it failed halfway. Its records do not belong to the new partition; an operator may inspect them."""
        if folder in where.unloaded:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{folder} was not loaded")
        aside = os.path.join(where.path, marked_folder_name(*key, STRAY))
        with self.lock:
            replaced = self.replaced.get(key)
            if replaced is not None and replaced.folder == folder:
                del self.replaced[key]
        try:
            self.files.rename(folder, aside)
        except OSError as error:
            raise where.state.fail(f"renaming {folder}", error) from error
        logger.warning("renamed leftover folder %s to %s", folder, aside)

    def _sync_name(self, log: Log) -> None:
        """Syncs the directory of a new folder. Without the lock, so that threads share one write of the disk."""
        folder = log.folder
        if folder in self._unsynced:
            try:
                self.files.sync_dir(log.directory.path)
            except OSError as error:
                raise log.directory.fail(f"making {log.name}", error) from error
            self._unsynced.discard(folder)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Sets the directory in which the log will be made, until the broker stops."""
        with self.lock:
            self._preferred[topic, partition] = directory
            if len(self._preferred) > MOST_PREFERENCES:
                del self._preferred[next(iter(self._preferred))]

    def set_topic_id(self, log: Log, topic_id: bytes) -> None:
        if log.topic_id is None:
            try:
                write_topic_id(self.files, os.path.join(log.folder, PARTITION_METADATA), topic_id)
            except OSError as error:
                raise log.directory.fail(f"writing the topic id of {log.name}", error) from error
            log.topic_id = topic_id
        elif log.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{log.name} on disk has topic id {id_text(log.topic_id)}, not {id_text(topic_id)}",
            )

    def check_room(self) -> None:
        """KafkaError if no directory can take a new log."""
        self._least_used().state.check_writable()

    def _least_used(self) -> LogDirectory:
        online = [directory for directory in self.directories if not directory.state.offline]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        candidates = [directory for directory in online if not directory.state.full] or online
        if len(candidates) == 1:
            return candidates[0]
        self._count_logs()
        return min(candidates, key=lambda directory: self._counts[directory.state])

    def _count_logs(self) -> None:
        """Counts the logs of each directory after every 1 % of new logs: with ten thousand logs, every hundred."""
        self._recount_in -= 1
        if self._recount_in < 0:
            self._counts = {directory.state: 0 for directory in self.directories}
            for log in self.logs.values():
                if log.directory in self._counts:
                    self._counts[log.directory] += 1
            self._recount_in = len(self.logs) // 100

    def delete(self, topic: str, partition: int) -> None:
        """Deletes the logs of a partition: renames their folders at once, deletes them after file.delete.delay.ms."""
        self.of(topic, partition).delete()

    def delete_unloaded(self, keys: Collection[TopicPartition]) -> None:
        """Deletes folders of these partitions that could not be loaded."""
        self._loading.delete(keys)

    def retire(self, log: Log) -> None:
        """Closes a log that is no longer in use, and deletes its folder as `delete` does."""
        try:
            doomed = self._rename(log, DELETE)
        except KafkaError:
            self.leave_behind(log)
            raise
        self.doomed_folders.add([doomed], self.clock_ms() + log.config.file_delete_delay_ms)

    def retire_replaced(self, log: Log) -> None:
        """As `retire`, for a log that a move has replaced. If a deletion has taken it meanwhile, its folder may be that
        of a new topic of this name."""
        key = (log.topic, log.partition)
        with self.checkpoints.lock:  # no log is created meanwhile
            with self.lock:
                if self.replaced.get(key) is not log:
                    return
                del self.replaced[key]
            self.retire(log)

    def leave_behind(self, log: Log) -> None:
        """Leaves the folder of a log that is no longer in use; the next start must recover it."""
        self._left_behind.add(log.directory)

    def set_aside(self, topic: str, partition: int) -> str:
        """Removes a log that belongs to no topic; returns its new folder, a stray one, kept for an operator."""
        with self.lock:
            log = self.logs.pop((topic, partition), None)
        return "" if log is None else self._rename(log, STRAY)

    def _rename(self, log: Log, mark: str) -> str:
        log.abandon()
        folder = os.path.join(log.directory.path, marked_folder_name(log.topic, log.partition, mark))
        log.move(folder)
        return folder

    def reconfigure(self, topic: str) -> None:
        """Applies new settings of a topic."""
        config = self.config_of(topic)
        for key in [key for key in list(self.logs) if key[0] == topic]:
            self.of(*key).reconfigure(config)

    def reconfigure_all(self) -> Steps[None]:
        """Applies new settings that all topics share; one step per topic."""
        keys: dict[str, list[TopicPartition]] = {}
        for key in list(self.logs):
            if not is_sibling(key[0]):
                keys.setdefault(key[0], []).append(key)
        for topic, of_topic in keys.items():
            config = self.config_of(topic)
            for key in of_topic:
                self.of(*key).reconfigure(config)
            yield

    # Housekeeping.

    def look_after(self) -> None:
        """Applies retention, deletes due files, expires producers, closes idle files: at least once every
        log.retention.check.interval.ms."""
        now_ms = self.clock_ms()
        self._for_each_log("applying retention to", lambda log: retain(log, now_ms))
        self._for_each_log("deleting files of", lambda log: delete_doomed(log, now_ms))
        self._for_each_log("expiring producers of", lambda log: log.expire_producers(now_ms))
        self._for_each_log("closing idle files of", lambda log: log.release_idle())
        self.doomed_folders.delete_due(now_ms)

    def _for_each_log(self, doing: str, work: Callable[[Log], object]) -> None:
        """An error in one log is reported and does not stop the work on the others."""
        for log in list(self.logs.values()):
            try:
                work(log)
                self._complaints.end((doing, log.name))
            except (KafkaError, CorruptFileError, OSError) as error:
                self._complaints.add((doing, log.name), logging.ERROR, "%s %s: %s", doing, log.name, error)
            except Exception as bug:
                logger.error("%s %s: %s", doing, log.name, bug, exc_info=True)

    def mend(self) -> None:
        """Repairs logs that refuse appends because a write or a truncation failed halfway. Blocks."""
        self._for_each_log("mending", _mend)

    def flush_due(self) -> None:
        """Syncs sealed segments, and logs whose flush.ms has passed."""
        now_ms = self.clock_ms()
        self._for_each_log("flushing", lambda log: flush_if_due(log, now_ms))

    def _went_offline(self, path: str, _reason: str) -> None:
        with self.lock:
            for logs in (self.logs, self.future_logs):
                for key in [key for key, log in logs.items() if log.directory.path == path]:
                    del logs[key]
                    if logs is self.logs:
                        self.lost.add(key)
        if self._on_offline is not None:
            self._on_offline(path)

    # The end.

    def close(self, broker_epoch: int = -1) -> None:
        """A clean stop: flushes and closes every log, writes the checkpoints and, last of all, the markers.

        A directory with a log that was not loaded, or could not be closed, gets no marker. When this returns, other
        processes may use the directories. A second call is harmless.
        """
        self.interrupt()
        if self._closed:
            return
        self._closed = True
        unclosed = set(self._left_behind)

        def close(log: Log) -> None:
            try:
                log.close()
            except Exception as error:
                logger.error("closing %s: %s", log.name, error, exc_info=not isinstance(error, KafkaError))
                unclosed.add(log.directory)

        logs = [*self.logs.values(), *self.future_logs.values()]
        if len(logs) >= MANY:
            for_each(logs, close, self.make_pool)
        else:
            for log in logs:
                close(log)
        self.checkpoints.write_all()
        for directory in self.directories:
            directory.unclosed = directory.state in unclosed
            try:
                directory.end(broker_epoch)
            except OSError as error:
                directory.state.fail("writing the clean-shutdown marker", error)
            directory.release()

    def abandon(self) -> None:
        """Closes everything without writing, as after a crash."""
        self.interrupt()
        self._closed = True
        for log in [*self.logs.values(), *self.future_logs.values()]:
            log.abandon()
        for directory in self.directories:
            directory.release()


def _mend(log: Log) -> None:
    is_hurt = log.broken or log.damaged_indexes
    if is_hurt and not log.directory.full and not log.directory.offline and log.mend():
        logger.warning("%s accepts appends again", log.name)
