"""All logs of a broker, over its log directories: load, create, delete, look after, close.

A directory that fails goes offline by itself, named; its logs leave the manager and the others go on. A partition whose
folder cannot be understood is set aside in `unreadable`, with the reason, and does not stop its neighbours.

Threads. `load`, `look_after`, `flush_due` and `close` block and belong to worker threads; `get` and `create` are quick.
The map of logs is guarded by a lock; each log has its own. Lock order: a log's `upkeep`, its `lock`, the manager's.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ixion.log import checkpoint
from ixion.log.checkpoint import Offsets
from ixion.log.config import LogConfig
from ixion.log.corrupt import CorruptFileError
from ixion.log.directory import LogDirectory
from ixion.log.files import Files
from ixion.log.flushing import flush_if_due
from ixion.log.loader import open_log
from ixion.log.log import Log
from ixion.log.names import DELETE, FUTURE, STRAY, PartitionFolder, folder_name, marked_folder_name
from ixion.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from ixion.log.partition_metadata import write_topic_id
from ixion.log.retention import delete_doomed, retain
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import id_text

logger = logging.getLogger(__name__)

Key = tuple[str, int]
MOST_PREFERENCES: Final = 10_000  # anybody can have one for a partition that never comes


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
    ) -> None:
        """Locks every directory; `load` opens the logs. `config_of` gives the settings of a topic."""
        self.files = files if files is not None else Files()
        self.clock_ms = clock_ms
        self.config_of = config_of
        self.recovery_threads = recovery_threads
        self.logs: dict[Key, Log] = {}
        self.future_logs: dict[Key, Log] = {}
        self.unreadable: dict[Key, str] = {}
        self._preferred: dict[Key, LogDirectory] = {}  # where logs that are not there yet are to be made
        self._on_offline = on_offline
        self._lock = threading.RLock()  # a log that fails while it is made comes back through `_went_offline`
        self._checkpointing = threading.Lock()  # taken before the locks of logs
        self._doomed_folders: list[tuple[int, str]] = []  # (when to delete, folder)
        self.directories: list[LogDirectory] = []
        try:
            for path in paths:
                self.directories.append(LogDirectory(path, self.files, self._went_offline))
        except BaseException:
            for directory in self.directories:
                directory.release()
            raise

    # Loading.

    def load(self) -> None:
        """Opens every partition of every directory."""
        for directory in self.directories:
            try:
                directory.begin()
                folders = directory.folders()
                for path in directory.folders_to_delete():
                    self._doomed_folders.append((self.clock_ms(), path))
            except OSError as error:
                directory.home.fail("reading the directory", error)
                continue
            if self.recovery_threads > 1 and not directory.was_clean and len(folders) > 1:
                with ThreadPoolExecutor(self.recovery_threads, "log-recovery") as pool:
                    list(pool.map(lambda found, where=directory: self._load_one(where, *found), folders))
            else:
                for path, parsed in folders:
                    self._load_one(directory, path, parsed)

    def _load_one(self, directory: LogDirectory, path: str, parsed: PartitionFolder) -> None:
        key = (parsed.topic, parsed.partition)
        if directory.home.offline:
            return
        try:
            log = open_log(
                home=directory.home,
                folder=path,
                topic=parsed.topic,
                partition=parsed.partition,
                config=self.config_of(parsed.topic),
                files=self.files,
                clock_ms=self.clock_ms,
                clean=directory.was_clean,
                recovery_point=directory.recovery_points.get(key, 0),
                log_start=directory.log_starts.get(key, 0),
                high_watermark=directory.high_watermarks.get(key, -1),
            )
        except CorruptFileError as error:
            logger.error("partition %s-%d cannot be used: %s", parsed.topic, parsed.partition, error)
            self.unreadable[key] = str(error)
            return
        except KafkaError:
            return  # the directory is offline now; it has said why
        with self._lock:
            logs = self.future_logs if parsed.mark == FUTURE else self.logs
            other = logs.get(key)
            if other is not None and _progress(other) >= _progress(log):
                log, other = other, log
            logs[key] = log
        if other is not None:
            self._set_aside(other, log)

    def _set_aside(self, log: Log, better: Log) -> None:
        """A partition was found twice. A move between directories that was cut short leaves two, of which the one that
        was put in place has all that the other has."""
        old = log.folder
        log.abandon()
        try:
            log.move(os.path.join(log.home.path, marked_folder_name(log.topic, log.partition, STRAY)))
        except KafkaError:
            return  # the directory is offline now; it has said why
        logger.error(
            "%s is in two directories; %s is further on, %s becomes %s", log.name, better.folder, old, log.folder
        )

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
        name = folder_name(topic, partition)
        key = (topic, partition)
        if key not in self.logs and key not in self.unreadable:
            self._forget_offsets(key)
        with self._lock:
            log = self.logs.get(key)
            if log is None:
                if key in self.unreadable:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.unreadable[key])
                where = directory or self._preferred.pop(key, None)
                if where is None or where.home.offline:
                    where = self._least_used()
                where.home.check_writable()
                log = open_log(
                    home=where.home,
                    folder=os.path.join(where.path, name),
                    topic=topic,
                    partition=partition,
                    config=self.config_of(topic) if config is None else config,
                    files=self.files,
                    clock_ms=self.clock_ms,
                )
                self.logs[key] = log
        if topic_id is not None:
            self._set_topic_id(log, topic_id)
        return log

    def _forget_offsets(self, key: Key) -> None:
        """An earlier partition of this name was deleted. If its log start were found after a crash, the new one would
        seem to end before it begins, and all of it would go."""
        for directory in self.directories:
            if directory.remembers(key):
                with self._checkpointing:
                    directory.forget(key)

    def prefer(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """If the log is made before the broker stops, it is made there."""
        with self._lock:
            self._preferred[topic, partition] = directory
            if len(self._preferred) > MOST_PREFERENCES:
                del self._preferred[next(iter(self._preferred))]

    def create_future(self, topic: str, partition: int, directory: LogDirectory) -> Log:
        """An empty log in another directory, to be filled with what the current one has and then to replace it."""
        key = (topic, partition)
        with self._lock:
            if key in self.future_logs:
                return self.future_logs[key]
            directory.home.check_writable()
            log = open_log(
                home=directory.home,
                folder=os.path.join(directory.path, marked_folder_name(topic, partition, FUTURE)),
                topic=topic,
                partition=partition,
                config=self.config_of(topic),
                files=self.files,
                clock_ms=self.clock_ms,
            )
            self.future_logs[key] = log
            return log

    def promote_future(self, topic: str, partition: int) -> Log:
        """The future log has caught up: it takes the place of the current one, which is deleted."""
        current = self.get(topic, partition)
        log = self.put_in_place(topic, partition)
        if current is not None:
            self.retire(current)
        return log

    def put_in_place(self, topic: str, partition: int) -> Log:
        """Gives the future log its proper name and makes it the one in use; the one before is the caller's to retire.

        In this order a crash leaves the partition twice, both complete, and never not at all.
        """
        key = (topic, partition)
        log = self.future_logs[key]
        current = self.get(topic, partition)
        if current is not None and current.topic_id is not None:
            self._set_topic_id(log, current.topic_id)
        log.move(os.path.join(log.home.path, folder_name(topic, partition)))
        with self._lock:
            self.future_logs.pop(key, None)
            self.logs[key] = log
        return log

    def drop_future(self, topic: str, partition: int) -> None:
        """Gives up a future log; nothing of it stays. Blocks."""
        with self._lock:
            log = self.future_logs.pop((topic, partition), None)
        if log is None:
            return
        log.abandon()
        if not log.home.offline:
            log.move(os.path.join(log.home.path, marked_folder_name(topic, partition, DELETE)))
            try:
                self.files.remove_tree(log.folder)
            except OSError as error:
                raise log.home.fail(f"deleting {log.folder}", error) from error

    def _set_topic_id(self, log: Log, topic_id: bytes) -> None:
        if log.topic_id is None:
            try:
                write_topic_id(self.files, os.path.join(log.folder, PARTITION_METADATA), topic_id)
            except OSError as error:
                raise log.home.fail(f"writing the topic id of {log.name}", error) from error
            log.topic_id = topic_id
        elif log.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{log.name} on disk is of topic {id_text(log.topic_id)}, not of {id_text(topic_id)}",
            )

    def _least_used(self) -> LogDirectory:
        counts = {directory.home: 0 for directory in self.directories if not directory.home.offline}
        if not counts:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        for log in self.logs.values():
            if log.home in counts:
                counts[log.home] += 1
        online = [directory for directory in self.directories if directory.home in counts]
        return min(online, key=lambda directory: counts[directory.home])

    def delete(self, topic: str, partition: int) -> None:
        """Takes a log out. Its folder is renamed at once and deleted after file.delete.delay.ms."""
        log = self._take_out(topic, partition)
        if log is not None:
            self.retire(log)

    def retire(self, log: Log) -> None:
        """Closes a log that is not in use any more; its folder goes as that of a deleted one does."""
        doomed = self._rename(log, DELETE)
        with self._lock:
            self._doomed_folders.append((self.clock_ms() + log.config.file_delete_delay_ms, doomed))

    def set_aside(self, topic: str, partition: int) -> str:
        """Takes out a log that belongs to no topic. Its folder is renamed and kept, for whoever misses it."""
        log = self._take_out(topic, partition)
        return "" if log is None else self._rename(log, STRAY)

    def _take_out(self, topic: str, partition: int) -> Log | None:
        with self._lock:
            return self.logs.pop((topic, partition), None)

    def _rename(self, log: Log, mark: str) -> str:
        log.abandon()
        folder = os.path.join(log.home.path, marked_folder_name(log.topic, log.partition, mark))
        log.move(folder)
        return folder

    def reconfigure(self, topic: str) -> None:
        """The settings of a topic have changed."""
        config = self.config_of(topic)
        for log in list(self.logs.values()):
            if log.topic == topic:
                log.reconfigure(config)

    # Upkeep.

    def look_after(self) -> None:
        """Retention, due deletions, silent producers, idle files; every log.retention.check.interval.ms or oftener."""
        now_ms = self.clock_ms()
        for log in list(self.logs.values()):
            try:
                retain(log, now_ms)
                delete_doomed(log, now_ms)
                log.expire_producers(now_ms)
                log.release_idle()
            except (KafkaError, OSError) as error:
                logger.error("looking after %s: %s", log.name, error)
        self.delete_folders(now_ms)

    def delete_folders(self, now_ms: int) -> None:
        with self._lock:
            due = [path for when, path in self._doomed_folders if when <= now_ms]
            self._doomed_folders = [entry for entry in self._doomed_folders if entry[0] > now_ms]
        for path in due:
            try:
                self.files.remove_tree(path)
            except OSError as error:
                logger.error("%s cannot be deleted: %s", path, error)

    def flush_due(self) -> None:
        """Syncs sealed segments, and logs whose flush.ms has passed."""
        now_ms = self.clock_ms()
        for log in list(self.logs.values()):
            try:
                flush_if_due(log, now_ms)
            except KafkaError as error:
                logger.error("flushing %s: %s", log.name, error)

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint(checkpoint.RECOVERY_POINTS, lambda log: log.recovery_point)

    def checkpoint_high_watermarks(self) -> None:
        self._checkpoint(checkpoint.HIGH_WATERMARKS, lambda log: log.high_watermark)

    def checkpoint_log_starts(self) -> None:
        """Only starts that the file names do not tell."""
        self._checkpoint(checkpoint.LOG_STARTS, _untold_start)

    def checkpoint_all(self) -> None:
        self.checkpoint_recovery_points()
        self.checkpoint_high_watermarks()
        self.checkpoint_log_starts()

    def _checkpoint(self, name: str, offset_of: Callable[[Log], int]) -> None:
        """One at a time: of two that come from different threads, the later one must be what stays."""
        with self._checkpointing:
            with self._lock:
                logs = [*self.future_logs.values(), *self.logs.values()]
            for directory in self.directories:
                offsets: Offsets = {}
                for log in logs:
                    if log.home is directory.home:
                        offset = offset_of(log)
                        if offset >= 0:
                            offsets[log.topic, log.partition] = offset
                try:
                    directory.write_checkpoint(name, offsets)
                except KafkaError as error:
                    logger.error("%s", error)

    def _went_offline(self, path: str, _reason: str) -> None:
        with self._lock:
            for logs in (self.logs, self.future_logs):
                for key in [key for key, log in logs.items() if log.home.path == path]:
                    del logs[key]
        if self._on_offline is not None:
            self._on_offline(path)

    # The end.

    def close(self, broker_epoch: int = -1) -> None:
        """A clean stop: flushes and closes every log, writes the checkpoints and, last of all, the markers."""
        for log in [*self.logs.values(), *self.future_logs.values()]:
            try:
                log.close()
            except KafkaError as error:
                logger.error("closing %s: %s", log.name, error)
        self.checkpoint_all()
        for directory in self.directories:
            try:
                directory.end(broker_epoch)
            except OSError as error:
                directory.home.fail("writing the clean-shutdown marker", error)
            directory.release()

    def abandon(self) -> None:
        """Lets go of everything and writes nothing, as a crash would."""
        for log in [*self.logs.values(), *self.future_logs.values()]:
            log.abandon()
        for directory in self.directories:
            directory.release()


def _progress(log: Log) -> tuple[int, int]:
    """Of two copies of a partition, the one that a later leader wrote to, or that is longer, is further on."""
    return (log.epochs.latest, log.end_offset)


def _untold_start(log: Log) -> int:
    """The log start if it lies within a segment; -1 if a file name says it."""
    with log.lock:
        return log.log_start if log.log_start > log.segments.first.base_offset else -1
