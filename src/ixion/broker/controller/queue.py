"""The controller's queue: runs one change at a time, in the order of arrival, with one thread for logs.

A change has the cluster to itself from its first look at the image to its last step. It runs to its end even if its
caller is cancelled, because a change that stops half-way leaves the tree ahead of the image. Creating and deleting logs
waits for a disk, so that part runs on the controller's own thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.pools import MakePool, threads

T = TypeVar("T")

logger = logging.getLogger(__name__)


class ChangeQueue:
    def __init__(self, make_pool: MakePool = threads) -> None:
        self.turn = asyncio.Lock()  # held while a change runs
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = make_pool(1, "controller")
        self._stopped = False

    async def run(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `change` returns, after all changes before it. KafkaError once the queue has stopped."""
        task = asyncio.get_running_loop().create_task(self._in_turn(change))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_nobody_waits)
            raise

    async def _in_turn(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self.turn:
            self._check_running()
            return await change()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` after everything that was given to the thread before. KafkaError once the queue has stopped."""
        self._check_running()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _check_running(self) -> None:
        if self._stopped:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this broker is stopping, or is no longer the controller")

    def stop(self) -> None:
        self._stopped = True
        self._thread.shutdown(wait=True)


def _nobody_waits(task: asyncio.Task[Any]) -> None:
    """The caller is gone. That the change was refused concerns nobody; a fault is in the log, as no caller gets it."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, KafkaError):
        logger.error("a change that nobody waits for failed", exc_info=error)
