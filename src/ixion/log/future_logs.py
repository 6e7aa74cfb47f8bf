"""Future logs, as Kafka calls them: copies in another directory that will replace the logs in use; see `mover`.

They are in `LogManager.future_logs`, in folders marked as future, until they get their final name and replace the
current log.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ixion.log.directory import LogDirectory
from ixion.log.log import Log
from ixion.log.names import DELETE, FUTURE, folder_name, marked_folder_name

if TYPE_CHECKING:
    from ixion.log.manager import LogManager


class FutureLogs:
    def __init__(self, manager: LogManager) -> None:
        self._manager = manager

    def create(self, topic: str, partition: int, directory: LogDirectory) -> Log:
        """An empty log in another directory, which will get the records of the current one and then replace it."""
        key = (topic, partition)
        manager = self._manager
        with manager.lock:
            if key in manager.future_logs:
                return manager.future_logs[key]
            directory.state.check_writable()
            folder = os.path.join(directory.path, marked_folder_name(topic, partition, FUTURE))
            log = manager.future_logs[key] = manager.make(directory, folder, key, manager.config_of(topic))
            return log

    def give_name(self, topic: str, partition: int) -> None:
        """Gives the future log its final name and topic id, durably. Blocks; does nothing if it has them.

        After a crash from here on, the partition exists twice, and the next start keeps the better copy.
        """
        manager = self._manager
        log = manager.future_logs[topic, partition]
        current = manager.get(topic, partition)
        if current is not None and current.topic_id is not None:
            manager.set_topic_id(log, current.topic_id)
        folder = os.path.join(log.directory.path, folder_name(topic, partition))
        if log.folder != folder:
            if os.path.isdir(folder):  # an earlier move could not delete it
                for directory in manager.directories:
                    if directory.state is log.directory:
                        manager.set_leftover_aside(directory, folder, (topic, partition))
            log.move(folder)

    def put_in_place(self, topic: str, partition: int) -> Log:
        """Makes the future log the current one. The caller retires the log that it replaces."""
        manager = self._manager
        key = (topic, partition)
        with manager.lock:
            log = manager.future_logs.pop(key)
            manager.logs[key] = log
        return log

    def drop(self, topic: str, partition: int) -> None:
        """Deletes a future log. Blocks."""
        manager = self._manager
        with manager.lock:
            log = manager.future_logs.pop((topic, partition), None)
        if log is None:
            return
        log.abandon()
        if not log.directory.offline:
            log.move(os.path.join(log.directory.path, marked_folder_name(topic, partition, DELETE)))
            manager.doomed_folders.delete(log.folder)
