"""Logs that are being filled in another directory, each to replace the one in use; see `mover`.

In Kafka's words, future logs. They are in `LogManager.future_logs`, in folders marked as future, until they have their
proper name and are put in place.
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
        """An empty log in another directory, to be filled with what the current one has and then to replace it."""
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
        """Gives the future log its proper name and topic id, durably. Blocks; does nothing if it has them.

        From here on a crash leaves the partition twice, and the next start keeps the copy that is further on.
        """
        manager = self._manager
        log = manager.future_logs[topic, partition]
        current = manager.get(topic, partition)
        if current is not None and current.topic_id is not None:
            manager.set_topic_id(log, current.topic_id)
        folder = os.path.join(log.directory.path, folder_name(topic, partition))
        if log.folder != folder:
            if os.path.isdir(folder):  # what an earlier move could not delete
                for directory in manager.directories:
                    if directory.state is log.directory:
                        manager.set_leftover_aside(directory, folder, (topic, partition))
            log.move(folder)

    def put_in_place(self, topic: str, partition: int) -> Log:
        """Makes the future log, which has its name, the one in use; the one before is the caller's to retire."""
        manager = self._manager
        key = (topic, partition)
        with manager.lock:
            log = manager.future_logs.pop(key)
            manager.logs[key] = log
        return log

    def drop(self, topic: str, partition: int) -> None:
        """Gives up a future log; nothing of it stays. Blocks."""
        manager = self._manager
        with manager.lock:
            log = manager.future_logs.pop((topic, partition), None)
        if log is None:
            return
        log.abandon()
        if not log.directory.offline:
            log.move(os.path.join(log.directory.path, marked_folder_name(topic, partition, DELETE)))
            manager.doomed_folders.delete(log.folder)
