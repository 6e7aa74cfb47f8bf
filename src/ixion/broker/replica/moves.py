"""Partitions that are on their way to other log directories of this broker.

Each partition has at most one running move. A new destination cancels the running move and starts once it has stopped.
A move that a stop of the broker interrupts leaves an empty future log at its destination; a crash leaves what was
copied. In both cases the next start begins the move again. It also moves siblings to the directories of their
partitions: a crash in the last step of a move may have left one behind.

Call all methods on the event loop. Moves run on threads of their own, so that a large one does not delay flushes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from ixion.language.model.errors import KafkaError
from ixion.language.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    import asyncio

    from ixion.broker.log.directory import LogDirectory
    from ixion.broker.log.log import Log
    from ixion.broker.log.manager import LogManager
    from ixion.broker.log.mover import Mover
    from ixion.broker.replica.partition import Partition

logger = logging.getLogger(__name__)


class DirectoryMoves:
    def __init__(
        self,
        logs: LogManager,
        loop: asyncio.AbstractEventLoop,
        threads: int,
        arrived: Callable[[Log], None],
        moved: Callable[[Partition], None],
    ) -> None:
        """`arrived` is called on another thread with each new log, while appends wait; `moved` on the loop with the
        partition of a move that has ended, well or not."""
        self._logs = logs
        self._loop = loop
        self._threads = threads
        self._arrived = arrived
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
            if not self._is_all_in(key, directory):
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

    def resume(self, partition: Partition) -> None:
        """Continue a move that the last stop interrupted. Called when a partition gets its first role."""
        logs, key = self._logs.of(*partition.key), partition.key
        where = self._directory_of(self._logs.future_logs.get(key, partition.log))
        if where is None or key in self._under_way:
            return
        if not self._is_all_in(key, where):
            self._start(partition, where)
        elif logs.copies:
            self._loop.run_in_executor(self._get_pool(), self._drop, key)

    def drop_unused(self, partitions: Collection[TopicPartition]) -> None:
        """Delete copies of partitions that are not among these."""
        used = {key for each in partitions for key in self._logs.of(*each).keys}
        for key in self._logs.future_logs.keys() - used:
            self._loop.run_in_executor(self._get_pool(), self._drop, key)

    def _directory_of(self, log: Log) -> LogDirectory | None:
        return next((each for each in self._logs.directories if each.state is log.directory), None)

    def _is_all_in(self, key: TopicPartition, directory: LogDirectory) -> bool:
        """Whether the logs of a partition are in this directory, its sibling as well."""
        return all(log.directory is directory.state for log in self._logs.of(*key).in_use)

    def _start(self, partition: Partition, directory: LogDirectory) -> None:
        from ixion.broker.log.mover import Mover

        if self._stopping:
            return
        key = partition.key
        mover = Mover(self._logs, *key, directory, self._arrived)
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
        from ixion.broker.log.mover import MoveCancelledError

        try:
            mover.run()
        except MoveCancelledError:
            if self._stopping:
                self._logs.of(*key).make_copies(directory)

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
            self._logs.of(*key).drop_copies()
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
