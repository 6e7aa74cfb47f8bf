"""Partitions that are on their way to other log directories of this broker.

Each partition has at most one running move. A new destination cancels the running move and starts once it has stopped.
A move that a stop of the broker interrupts leaves an empty future log at its destination; a crash leaves what was
copied. In both cases the next start begins the move again.

Call all methods on the event loop. Moves run on threads of their own, so that a large one does not delay flushes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from ixion.model.errors import KafkaError
from ixion.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio

    from ixion.log.directory import LogDirectory
    from ixion.log.log import Log
    from ixion.log.manager import LogManager
    from ixion.log.mover import Mover
    from ixion.replica.partition import Partition

logger = logging.getLogger(__name__)


class DirectoryMoves:
    def __init__(
        self, logs: LogManager, loop: asyncio.AbstractEventLoop, threads: int, moved: Callable[[Partition], None]
    ) -> None:
        """`moved` is called on the loop with each partition that has arrived."""
        self._logs = logs
        self._loop = loop
        self._threads = threads
        self._moved = moved
        self._pool: Executor | None = None  # made with the first move; most brokers never have one
        self._under_way: dict[TopicPartition, tuple[Mover, LogDirectory]] = {}
        # Moves that begin once the running move has stopped.
        self._after: dict[TopicPartition, tuple[Partition, LogDirectory]] = {}
        self._stopping = False

    def begin(self, partition: Partition, directory: LogDirectory) -> None:
        """Returns at once. If the partition is there already, this only cancels a running move."""
        key = partition.key
        under_way = self._under_way.get(key)
        if under_way is None:
            if partition.log.directory is not directory.state:
                self._start(partition, directory)
        elif under_way[1] is directory:
            self._after.pop(key, None)
        else:
            under_way[0].cancel()
            self._after[key] = (partition, directory)

    def cancel(self, key: TopicPartition) -> None:
        """Cancel the move of a partition that has left this broker."""
        self._after.pop(key, None)
        under_way = self._under_way.get(key)
        if under_way is not None:
            under_way[0].cancel()

    def resume(self, partitions: dict[TopicPartition, Partition]) -> None:
        """Continue moves that the last stop interrupted; drop those without a partition."""
        for key, future in list(self._logs.future_logs.items()):
            partition = partitions.get(key)
            directory = next((each for each in self._logs.directories if each.state is future.directory), None)
            if partition is not None and directory is not None and partition.log.directory is not directory.state:
                self._start(partition, directory)
            else:
                self._loop.run_in_executor(self._get_pool(), self._drop, key)

    def _start(self, partition: Partition, directory: LogDirectory) -> None:
        from ixion.log.mover import Mover

        def arrived(log: Log) -> None:
            partition.log = log  # appends that wait for the old log's lock read this again

        key = partition.key
        mover = Mover(self._logs, *key, directory, arrived)
        self._under_way[key] = (mover, directory)
        logger.info("%s moves from %s to %s", partition.log.name, partition.log.directory.path, directory.path)
        run = self._loop.run_in_executor(self._get_pool(), self._run, mover, key, directory)
        run.add_done_callback(lambda done: self._ended(partition, done))

    def _get_pool(self) -> Executor:
        if self._pool is None:
            self._pool = self._logs.make_pool(self._threads, "alter-log-dirs")
        return self._pool

    def _run(self, mover: Mover, key: TopicPartition, directory: LogDirectory) -> None:
        """On a thread of the pool."""
        from ixion.log.mover import MoveCancelledError

        try:
            mover.run()
        except MoveCancelledError:
            if self._stopping:
                self._logs.futures.create(*key, directory)

    def _ended(self, partition: Partition, done: asyncio.Future[None]) -> None:
        key = partition.key
        self._under_way.pop(key, None)
        error = None if done.cancelled() else done.exception()
        if isinstance(error, KafkaError):
            logger.error("%s was not moved: %s", partition.log.name, error)
        elif error is not None:
            logger.error("%s was not moved", partition.log.name, exc_info=error)
        self._moved(partition)
        after = self._after.pop(key, None)
        if after is not None and not self._stopping:
            self.begin(*after)

    def _drop(self, key: TopicPartition) -> None:
        """On a thread of the pool."""
        try:
            self._logs.futures.drop(*key)
        except KafkaError as error:
            logger.error("the leftovers of a move of %s-%d could not be deleted: %s", *key, error)

    def cancel_all(self) -> None:
        """Cancel all moves, because the broker stops; `wait` returns when they have stopped."""
        self._stopping = True
        for mover, _ in self._under_way.values():
            mover.cancel()

    def wait(self) -> None:
        """Blocks, on any thread: a move may be waiting for the disk."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
