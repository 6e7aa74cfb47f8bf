"""The controller's queue: one change at a time, in the order of arrival, with one thread for work on the tree.

A change holds `change` from its first look at the cluster image to its last step on the event loop. Writing to the tree
waits for a disk or the network, so that part runs on the controller's own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ixion.model.errors import ErrorCode, KafkaError

T = TypeVar("T")


class ChangeQueue:
    def __init__(self) -> None:
        self.change = asyncio.Lock()  # held for as long as a change takes
        self._thread = ThreadPoolExecutor(1, "controller")

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` after everything that was given to the thread before. KafkaError once the queue has stopped."""
        try:
            pending = asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError as error:  # the executor has been shut down
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the broker is stopping") from error
        return await pending

    def stop(self) -> None:
        self._thread.shutdown(wait=True)
