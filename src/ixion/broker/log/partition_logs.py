"""The logs of one partition, which are changed together: the log, its sibling of delayed records, their copies.

    in use             orders-0 in /disk1                  __delay.orders-0 in /disk1
    on their way       orders-0.…-future in /disk2         __delay.orders-0.…-future in /disk2

Future logs, as Kafka calls them, are copies in another directory that will replace the logs in use; see `mover`. Most
partitions have neither copies nor a sibling.

1. New settings reach every log of the partition: a copy that missed them would bring the old ones back.
2. A partition that moves is not compacted: the copy has old values of a key, and would miss the tombstone that deleted
   them.
3. The sibling is in the directory of its partition, and moves with it. Both change their directory at the same moment.
4. A deletion takes every log, also one that was just replaced. A copy can only replace the log that it was made from.
5. A partition has failed if one of its logs in use has.
6. An empty log replaces none that may be in a directory that is offline.

The logs are in `LogManager.logs` and `LogManager.future_logs`, which the lock of the manager guards; this class holds
the rules. Methods that rename folders block.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ixion.broker.log.config import LogConfig, sibling_config
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.broker.log.names import DELETE, FUTURE, folder_name, marked_folder_name
from ixion.language.model.delay_names import sibling_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from ixion.broker.log.manager import LogManager

Pair = tuple[Log, Log]  # a log in use, and its copy


class PartitionLogs:
    __slots__ = ("_manager", "key", "keys")

    def __init__(self, manager: LogManager, topic: str, number: int) -> None:
        self._manager = manager
        self.key: TopicPartition = (topic, number)
        self.keys: tuple[TopicPartition, TopicPartition] = (self.key, (sibling_of(topic), number))

    @property
    def in_use(self) -> list[Log]:
        """The log of the partition, then its sibling, as far as they exist."""
        logs = self._manager.logs
        return [logs[key] for key in self.keys if key in logs]

    @property
    def copies(self) -> list[Log]:
        logs = self._manager.future_logs
        return [logs[key] for key in self.keys if key in logs]

    @property
    def sibling(self) -> Log | None:
        return self._manager.logs.get(self.keys[1])

    # Settings.

    def reconfigure(self, config: LogConfig) -> None:
        """Applies new settings of the topic."""
        self._apply(self.key, config)
        if self.sibling is not None:
            self._apply(self.keys[1], sibling_config(config))

    def _apply(self, key: TopicPartition, config: LogConfig) -> None:
        # The copy last: one that is made meanwhile gets the settings of the log in use (`_make_copy`).
        for logs in (self._manager.logs, self._manager.future_logs):
            log = logs.get(key)
            if log is not None:
                log.reconfigure(config)

    # Compaction.

    def pause_cleaning(self) -> None:
        """Until `resume_cleaning`, the logs in use are not compacted. A running compaction gives up."""
        self._set_moving(True)

    def resume_cleaning(self) -> None:
        self._set_moving(False)

    def _set_moving(self, moving: bool) -> None:
        for log in self.in_use:
            with log.lock:
                log.moving = moving

    # Missing and failed logs.

    def check_none_offline(self) -> None:
        """KafkaError if a log is missing, and may be in a directory that is offline.

        A partition without records has no delayed ones: each has left a hole in it. So it needs no sibling yet.
        """
        manager = self._manager
        log = manager.logs.get(self.key)
        if log is None:
            what = "its log"
        elif self.sibling is None and self._had_sibling(log):
            what = "the log of its delayed records"
        else:
            return
        offline = [directory.path for directory in manager.directories if directory.state.offline]
        if offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what} may be in {offline[0]}, which is offline")

    def _had_sibling(self, log: Log) -> bool:
        """Whether there may have been one: records wait in every mode, so the setting alone does not tell."""
        return (log.config.delays_records and log.end_offset > 0) or self.keys[1] in self._manager.lost

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing that `check_none_offline` would look for."""
        log = self._manager.logs.get(self.key)
        return log is not None and (self.sibling is not None or not self._had_sibling(log))

    # Deletion.

    def delete(self) -> None:
        """Renames the folders at once; they are deleted after file.delete.delay.ms. KafkaError if one cannot be.

        The log in use goes last: if we are killed in between, the deletion is repeated and finds it. Folders that could
        not be loaded go first: one that is being opened is a log in use afterwards.
        """
        manager = self._manager
        manager.delete_unloaded(self.keys)
        with manager.lock:
            replaced = [manager.replaced.pop(key) for key in self.keys if key in manager.replaced]
            doomed = [*self.copies, *replaced, *reversed(self.in_use)]
            for key in self.keys:
                manager.future_logs.pop(key, None)
                manager.logs.pop(key, None)
        fault: KafkaError | None = None
        for log in doomed:
            try:
                manager.retire(log)
            except KafkaError as error:
                fault = error
        if fault is not None:
            raise fault

    # Copies.

    def make_copies(self, directory: LogDirectory) -> list[Pair]:
        """The logs in use that are not in `directory`, each with a copy there, which is new and empty if it was not
        there. KafkaError if the partition has no log."""
        manager = self._manager
        if any(copy.directory is not directory.state or not self._is_of_use(copy) for copy in self.copies):
            self.drop_copies()
        if self.key not in manager.logs:
            name = f"{self.key[0]}-{self.key[1]}"
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"there is no log of {name} to move")
        return [(log, self._make_copy(log, directory)) for log in self.in_use if log.directory is not directory.state]

    def _is_of_use(self, copy: Log) -> bool:
        """False for a copy of a deleted topic's log, in a directory that was offline then: the new topic has none."""
        return (copy.topic, copy.partition) in self._manager.logs

    def _make_copy(self, log: Log, directory: LogDirectory) -> Log:
        manager, key = self._manager, (log.topic, log.partition)
        with manager.lock:
            copy = manager.future_logs.get(key)
            if copy is None:
                directory.state.check_writable()
                folder = os.path.join(directory.path, marked_folder_name(*key, FUTURE))
                copy = manager.future_logs[key] = manager.make(directory, folder, key, log.config)
        if copy.config is not log.config:
            copy.reconfigure(log.config)  # `reconfigure` on another thread did not see the copy yet
        return copy

    def name_copies(self, pairs: list[Pair]) -> None:
        """Gives the copies their final names and topic ids, durably; does nothing for those that have them.

        After a crash from here on, a log exists twice, and the next start keeps the better copy.
        """
        manager = self._manager
        for log, copy in reversed(pairs):
            if log.topic_id is not None:
                manager.set_topic_id(copy, log.topic_id)
            folder = os.path.join(copy.directory.path, folder_name(copy.topic, copy.partition))
            if copy.folder == folder:
                continue
            if os.path.isdir(folder):  # an earlier move could not delete it
                for directory in manager.directories:
                    if directory.state is copy.directory:
                        manager.set_leftover_aside(directory, folder, (copy.topic, copy.partition))
            copy.move(folder, in_use=True)

    def may_put_in_place(self, pairs: list[Pair]) -> bool:
        """False if a log has come into use that has no copy. KafkaError if one is no longer in use: it was deleted, or
        its directory has failed. The caller holds the manager's lock."""
        manager = self._manager
        for log, copy in pairs:
            key = (log.topic, log.partition)
            if manager.logs.get(key) is not log or manager.future_logs.get(key) is not copy:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} in {log.directory.path} is closed")
        copied = [log for log, _ in pairs]
        where = pairs[0][1].directory
        return all(log in copied or log.directory is where for log in self.in_use)

    def put_in_place(self, pairs: list[Pair]) -> None:
        """Makes the copies the logs in use. The caller holds the manager's lock, and retires those they replace."""
        manager = self._manager
        for log, _ in pairs:
            key = (log.topic, log.partition)
            manager.logs[key] = manager.future_logs.pop(key)
            manager.replaced[key] = log

    def drop_copies(self) -> None:
        """Deletes the copies; KafkaError if one cannot be renamed.

        No log is created meanwhile: a copy may have its final name already, which a new topic's log would take.
        """
        manager = self._manager
        doomed: list[str] = []
        fault: KafkaError | None = None
        with manager.checkpoints.lock:
            with manager.lock:
                copies = self.copies
                for key in self.keys:
                    manager.future_logs.pop(key, None)
            for copy in copies:
                copy.abandon()
                if not copy.directory.offline:
                    folder = os.path.join(copy.directory.path, marked_folder_name(copy.topic, copy.partition, DELETE))
                    try:
                        copy.move(folder)
                        doomed.append(folder)
                    except KafkaError as error:
                        fault = error
        for folder in doomed:
            manager.doomed_folders.delete(folder)
        if fault is not None:
            raise fault
