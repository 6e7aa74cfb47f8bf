"""Brings requests about stored share partitions to their share coordinator, on this broker or on another one.

The first request creates `__share_group_state`. A request whose coordinator is loading, moves or cannot be reached is
repeated for share.coordinator.write.timeout.ms. Meanwhile later writes of the same share partition wait behind it, so
that none overtakes an earlier one, and then go as one. The same happens to writes that arrive while one is being
stored: under load, a hundred acknowledgements become one record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from ixion.broker.coordinators.share import remote
from ixion.broker.coordinators.share.coordinator import Answered, ShareCoordinator, Summarized, Summary
from ixion.broker.coordinators.share.shards import coordinator_key
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.broker_channels import BrokerChannels
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.broker.replica.share_persister import (
    NO_OFFSET,
    SharePartitionKey,
    ShareState,
    StateBatch,
    StateRead,
    StateUpdate,
    StateWritten,
)
from ixion.config import share_settings as settings
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.loop_timer import LoopTimer

logger = logging.getLogger(__name__)

RETRY_MS: Final = 25  # before the first repetition; doubled with each further one
MAX_RETRY_MS: Final = 800
RETRIABLE: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
MOST_MERGED: Final = 10_000  # batches in one write

A = TypeVar("A")
Done = Callable[[ErrorCode, A | None], None]


@dataclass(slots=True)
class Waiting:
    """Writes that wait for an earlier write of their share partition."""

    update: StateUpdate
    done: list[StateWritten]


class StateRouter:
    """Implements SharePersister, and does the same for the group coordinator."""

    def __init__(
        self,
        log: CoordinatorLog,
        local: Callable[[], ShareCoordinator],
        *,
        node_id: int,
        image: ClusterImage,
        channels: BrokerChannels | None,
        timer: LoopTimer,
        config: DynamicConfig,
    ) -> None:
        """`channels` lead to other brokers; None for a broker that is alone."""
        self._log = log
        self._local = local
        self._node_id = node_id
        self._image = image
        self._channels = channels
        self._timer = timer
        self._config = config
        self._writing: dict[SharePartitionKey, list[Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._creating: asyncio.Task[None] | None = None
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    # For leaders.

    def read_state(self, key: SharePartitionKey, leader_epoch: int, done: StateRead) -> None:
        def once(answer: Done[ShareState]) -> None:
            broker = self._broker_of(key)
            if self._channels is None or broker == self._node_id:
                self._local().read(key, leader_epoch, answer)
            else:
                self._send(remote.read(self._channels, broker, key, leader_epoch, answer))

        self._repeat(once, done)

    def write_state(self, key: SharePartitionKey, update: StateUpdate, done: StateWritten) -> None:
        queue = self._writing.get(key)
        if queue is None:
            self._writing[key] = []
            self._write(key, update, [done])
        elif queue and (merged := _merged(queue[-1].update, update)) is not None:
            queue[-1].update = merged
            queue[-1].done.append(done)
        else:
            queue.append(Waiting(update, [done]))

    # For the group coordinator.

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Answered) -> None:
        def once(answer: Done[None]) -> None:
            broker = self._broker_of(key)
            if self._channels is None or broker == self._node_id:
                self._local().initialize(key, state_epoch, start_offset, lambda code: answer(code, None))
            else:
                self._send(remote.initialize(self._channels, broker, key, state_epoch, start_offset, answer))

        self._repeat(once, lambda code, _: done(code))

    def delete(self, key: SharePartitionKey, done: Answered) -> None:
        def once(answer: Done[None]) -> None:
            broker = self._broker_of(key)
            if self._channels is None or broker == self._node_id:
                self._local().delete(key, lambda code: answer(code, None))
            else:
                self._send(remote.delete(self._channels, broker, key, answer))

        self._repeat(once, lambda code, _: done(code))

    def summary(self, key: SharePartitionKey, done: Summarized) -> None:
        def once(answer: Done[Summary]) -> None:
            broker = self._broker_of(key)
            if self._channels is None or broker == self._node_id:
                self._local().summary(key, answer)
            else:
                self._send(remote.summary(self._channels, broker, key, answer))

        self._repeat(once, done)

    # Internals.

    def _write(self, key: SharePartitionKey, update: StateUpdate, waiting: list[StateWritten]) -> None:
        def once(answer: Done[None]) -> None:
            broker = self._broker_of(key)
            if self._channels is None or broker == self._node_id:
                self._local().write(key, update, lambda code: answer(code, None))
            else:
                self._send(remote.write(self._channels, broker, key, update, answer))

        def done(code: ErrorCode, _: None) -> None:
            queue = self._writing[key]
            if queue:
                following = queue.pop(0)
                self._write(key, following.update, following.done)
            else:
                del self._writing[key]
            for each in waiting:
                each(code)

        self._repeat(once, done)

    def _repeat(self, once: Callable[[Done[A]], None], done: Done[A]) -> None:
        until_ms = self._config.current[settings.SHARE_COORDINATOR_WRITE_TIMEOUT_MS]

        def attempt(pause_ms: int, spent_ms: int) -> None:
            once(partial(answered, pause_ms, spent_ms))

        def answered(pause_ms: int, spent_ms: int, code: ErrorCode, answer: A | None) -> None:
            if code in RETRIABLE and spent_ms < until_ms and not self._stopped:
                self._create_topic()
                following = min(2 * pause_ms, MAX_RETRY_MS)
                self._timer.call_later(pause_ms, attempt, following, spent_ms + pause_ms)
            else:
                done(code, answer)

        attempt(RETRY_MS, 0)

    def _broker_of(self, key: SharePartitionKey) -> int:
        """The broker to ask; this one if no leader is known."""
        found = self._image.partition(self._log.name, self._log.partition_for(coordinator_key(key)))
        return self._node_id if found is None or found.leader < 0 else found.leader

    def _create_topic(self) -> None:
        if self._log.name not in self._image.topics and (self._creating is None or self._creating.done()):
            self._creating = self._timer.loop.create_task(self._create())

    async def _create(self) -> None:
        try:
            await self._log.ensure()
        except KafkaError as error:
            logger.info("%s cannot be created now: %s", self._log.name, error)
        except Exception:
            logger.exception("%s cannot be created", self._log.name)

    def _send(self, work: Coroutine[None, None, None]) -> None:
        task = self._timer.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _merged(first: StateUpdate, second: StateUpdate) -> StateUpdate | None:
    """Both changes as one; None if they must stay apart."""
    count = len(first.batches) + len(second.batches)
    if first.state_epoch != second.state_epoch or first.leader_epoch != second.leader_epoch or count > MOST_MERGED:
        return None
    batches: list[StateBatch] = [*first.batches, *second.batches]
    return StateUpdate(
        state_epoch=second.state_epoch,
        leader_epoch=second.leader_epoch,
        start_offset=first.start_offset if second.start_offset == NO_OFFSET else second.start_offset,
        delivery_complete_count=second.delivery_complete_count,
        batches=tuple(batches),
    )
