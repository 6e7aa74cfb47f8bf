"""Reopens partitions of a clustered broker that could not be opened because a disk was full.

After KAFKA_STORAGE_ERROR the controller treats such a replica as lost until this broker restarts. So once the logs are
open, this broker writes the same notification into the tree as after a failed log directory. The controller then sends
LeaderAndIsr for its replicas again, and learns from the answer which of them work.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import MetadataError
from ixion.broker.metadata.notification_node import encode_log_dir_event
from ixion.language.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)

PAUSE_S: Final = 1.0


class Reopening:
    """Use it on the loop. `look` is called at intervals."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._task: asyncio.Task[None] | None = None
        self._told: set[TopicPartition] = set()  # reported once: a log that still cannot be opened then is damaged

    def look(self) -> None:
        parts = self._parts
        offline = parts.replicas.offline
        if not offline:
            self._told.clear()
            return
        if self._task is not None or any(each.state.full or each.state.offline for each in parts.logs.directories):
            return
        if parts.logs.unreadable or not offline <= self._told:
            self._task = parts.loop.create_task(self._open(), name="reopening")
            parts.background.add(self._task)
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._parts.background.discard(task)
        self._task = None

    async def _open(self) -> None:
        parts = self._parts
        opened = await parts.loop.run_in_executor(parts.scheduler.workers, parts.logs.load_missing)
        offline = parts.replicas.offline
        if not opened and offline <= self._told:
            return
        logger.info("there is room again: asking for the roles of %d partitions", len(offline))
        self._told |= offline
        while not any(each.state.stopping for each in parts.logs.directories):
            try:
                await parts.session.create(
                    paths.NEW_LOG_DIR_EVENT, encode_log_dir_event(parts.node_id), sequential=True
                )
                return
            except MetadataError as error:
                logger.info("the controller could not be notified yet that there is room again: %s", error)
                await asyncio.sleep(PAUSE_S)
