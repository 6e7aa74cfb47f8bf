"""All logs of a broker, over its log directories: load, create, delete, look after, close.

A directory that fails goes offline by itself, named; its logs leave the manager and the others go on. A partition whose
folder cannot be understood is set aside in `unreadable`, with the reason, and does not stop its neighbours.

Threads. `load`, `look_after`, `flush_due` and `close` block and belong to worker threads; `get` and `create` are quick.
The map of logs is guarded by a lock; each log has its own. Lock order: a log's `replacing`, its `lock`, the manager's.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from ixion.log.checkpoint_writer import CheckpointWriter
from ixion.log.config import LogConfig
from ixion.log.corrupt import CorruptFileError
from ixion.log.directory import LogDirectory
from ixion.log.directory_loader import DirectoryLoader
from ixion.log.directory_state import DirectoryState
from ixion.log.doomed_folders import DoomedFolders
from ixion.log.files import Files
from ixion.log.flushing import flush_if_due
from ixion.log.future_logs import FutureLogs
from ixion.log.log import Log
from ixion.log.log_loader import open_log
from ixion.log.names import DELETE, STRAY, folder_name, marked_folder_name
from ixion.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from ixion.log.partition_metadata import write_topic_id
from ixion.log.retention import delete_doomed, retain
from ixion.log.together import for_each
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import id_text
from ixion.model.pools import MakePool, threads
from ixion.model.topic_partition import TopicPartition
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

MANY: Final = 64  # logs; so many are closed by several threads, because each waits for the disk a few times
MOST_PREFERENCES: Final = 10_000  # a client can ask for one for a partition that is never created


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
        """Locks every directory; `load` opens the logs. `config_of` gives the settings of a topic."""
        self.files = files if files is not None else Files()
        self.clock_ms = clock_ms
        self.config_of = config_of
        self.make_pool = make_pool
        self.logs: dict[TopicPartition, Log] = {}
        self.future_logs: dict[TopicPartition, Log] = {}
        self.unreadable: dict[TopicPartition, str] = {}
        self._preferred: dict[TopicPartition, LogDirectory] = {}  # where logs that are not there yet are to be made
        self._counts: dict[DirectoryState, int] = {}  # logs in each directory, counted now and then
        self._recount_in = 0  # new logs until they are counted again
        self._on_offline = on_offline
        self._closed = False
        self._left_behind: set[DirectoryState] = set()  # with the folder of a log that was not closed properly
        self._unsynced: set[str] = set()  # new folders whose names may not be on the disk yet
        self.lock = threading.RLock()  # a log that fails while it is made comes back through `_went_offline`
        self.doomed_folders = DoomedFolders(self.files, clock_ms)
        self.futures = FutureLogs(self)
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
        """Opens what could not be opened before for want of room or of file descriptors; says which. Blocks."""
        return self._loading.load_missing()

    def interrupt(self) -> None:
        """The broker stops: compactions give up, and no further log is opened. Blocks until none is being opened."""
        for directory in self.directories:
            directory.state.stopping = True
        self._loading.stop()

    # One log.

    def get(self, topic: str, partition: int) -> Log | None:
        return self.logs.get((topic, partition))

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes | None = None,
        directory: LogDirectory | None = None,
        config: LogConfig | None = None,
    ) -> Log:
        """The log of a partition, made if there is none, in the directory with the fewest logs or the one given.

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
        """Whether `create` would have nothing to do."""
        log = self.logs.get((topic, partition))
        return log is not None and log.topic_id == topic_id and log.folder not in self._unsynced

    def _create(self, key: TopicPartition, directory: LogDirectory | None, config: LogConfig | None) -> Log:
        # A checkpoint that is being written may have offsets of a log of this name that was deleted meanwhile.
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
                        f"the checkpoints in {where.path} have offsets of an earlier {name} and cannot be written",
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
        """A new log, in a folder that is not there yet. If it cannot be made whole, nothing of it stays."""
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
                pass  # `set_leftover_aside` finds it if another attempt is made; a start finds an empty log
            raise

    def set_leftover_aside(self, where: LogDirectory, folder: str, key: TopicPartition) -> None:
        """A folder of this name that is no log of ours is one that could not be renamed when its log was deleted, or
        could not be made whole. Its records are not those of the new partition. It is kept, under another name."""
        if folder in where.unloaded:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{folder} was not loaded")
        aside = os.path.join(where.path, marked_folder_name(*key, STRAY))
        try:
            self.files.rename(folder, aside)
        except OSError as error:
            raise where.state.fail(f"renaming {folder}", error) from error
        logger.warning("%s was left over; it is kept as %s", folder, aside)

    def _sync_name(self, log: Log) -> None:
        """A new folder is on the disk when the directory that holds its name was synced. Not under the lock: threads
        that do this at the same time share one write of the disk."""
        folder = log.folder
        if folder in self._unsynced:
            try:
                self.files.sync_dir(log.directory.path)
            except OSError as error:
                raise log.directory.fail(f"making {log.name}", error) from error
            self._unsynced.discard(folder)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """If the log is made before the broker stops, it is made there."""
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
                f"{log.name} on disk is of topic {id_text(log.topic_id)}, not of {id_text(topic_id)}",
            )

    def check_room(self) -> None:
        """KafkaError if a new log would find no directory."""
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
        """Counts the logs of each directory, but not for each new one: of ten thousand, for every hundredth."""
        self._recount_in -= 1
        if self._recount_in < 0:
            self._counts = {directory.state: 0 for directory in self.directories}
            for log in self.logs.values():
                if log.directory in self._counts:
                    self._counts[log.directory] += 1
            self._recount_in = len(self.logs) // 100

    def delete(self, topic: str, partition: int) -> None:
        """Takes a log out. Its folder is renamed at once and deleted after file.delete.delay.ms."""
        log = self._take_out(topic, partition)
        if log is not None:
            self.retire(log)

    def retire(self, log: Log) -> None:
        """Closes a log that is not in use any more; its folder goes as that of a deleted one does."""
        try:
            doomed = self._rename(log, DELETE)
        except KafkaError:
            self.leave_behind(log)
            raise
        self.doomed_folders.add([doomed], self.clock_ms() + log.config.file_delete_delay_ms)

    def leave_behind(self, log: Log) -> None:
        """The folder of a log that is not in use any more stays: the next start must recover what it finds there."""
        self._left_behind.add(log.directory)

    def set_aside(self, topic: str, partition: int) -> str:
        """Takes out a log that belongs to no topic. Its folder is renamed and kept for an operator."""
        log = self._take_out(topic, partition)
        return "" if log is None else self._rename(log, STRAY)

    def _take_out(self, topic: str, partition: int) -> Log | None:
        with self.lock:
            return self.logs.pop((topic, partition), None)

    def _rename(self, log: Log, mark: str) -> str:
        log.abandon()
        folder = os.path.join(log.directory.path, marked_folder_name(log.topic, log.partition, mark))
        log.move(folder)
        return folder

    def reconfigure(self, topic: str) -> None:
        """The settings of a topic have changed."""
        config = self.config_of(topic)
        for log in list(self.logs.values()):
            if log.topic == topic:
                log.reconfigure(config)

    def reconfigure_all(self) -> Steps[None]:
        """The settings that all topics share have changed; a step is one topic."""
        logs: dict[str, list[Log]] = {}
        for log in list(self.logs.values()):
            logs.setdefault(log.topic, []).append(log)
        for topic, of_topic in logs.items():
            config = self.config_of(topic)
            for log in of_topic:
                log.reconfigure(config)
            yield

    # Housekeeping.

    def look_after(self) -> None:
        """Retention, due deletions, silent producers, idle files; every log.retention.check.interval.ms or oftener."""
        now_ms = self.clock_ms()
        self._for_each_log("applying retention to", lambda log: retain(log, now_ms))
        self._for_each_log("deleting files of", lambda log: delete_doomed(log, now_ms))
        self._for_each_log("expiring producers of", lambda log: log.expire_producers(now_ms))
        self._for_each_log("closing idle files of", lambda log: log.release_idle())
        self.doomed_folders.delete_due(now_ms)

    def _for_each_log(self, doing: str, work: Callable[[Log], object]) -> None:
        """A log that fails, for whatever cause, does not keep the others from being looked after."""
        for log in list(self.logs.values()):
            try:
                work(log)
            except Exception as error:
                is_bug = not isinstance(error, (KafkaError, CorruptFileError, OSError))
                logger.error("%s %s: %s", doing, log.name, error, exc_info=is_bug)

    def mend(self) -> None:
        """Brings logs back that refuse appends because a write or a truncation failed halfway. Blocks."""
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
        if self._on_offline is not None:
            self._on_offline(path)

    # The end.

    def close(self, broker_epoch: int = -1) -> None:
        """A clean stop: flushes and closes every log, writes the checkpoints and, last of all, the markers.

        A directory with a log that was not loaded, or could not be closed, gets no marker. The logs are not used any
        more: when this returns, other processes may have them. Doing it twice is harmless.
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
        """Lets go of everything and writes nothing, as a crash would."""
        self.interrupt()
        self._closed = True
        for log in [*self.logs.values(), *self.future_logs.values()]:
            log.abandon()
        for directory in self.directories:
            directory.release()


def _mend(log: Log) -> None:
    is_hurt = log.broken or log.damaged_indexes
    if is_hurt and not log.directory.full and not log.directory.offline and log.mend():
        logger.warning("%s takes appends again", log.name)
