"""Recurring tasks, on worker threads or on the loop, started by the timer.

The interval runs from the end of one run to the start of the next. A task that fails is logged and runs again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ixion.language.model.pools import MakePool
from ixion.language.model.pools import threads as worker_threads
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)


class Scheduler:
    def __init__(self, timer: Timer, threads: int, make_pool: MakePool = worker_threads) -> None:
        self._timer = timer
        self._loop = asyncio.get_running_loop()
        self._stopped = False
        self.workers = make_pool(threads, "background")

    def every(
        self, name: str, interval_ms: int | Callable[[], int], work: Callable[[], object], first_ms: int | None = None
    ) -> None:
        """Run a task on a worker thread. An interval that can change is a function, called each time."""

        def interval() -> int:
            return interval_ms if isinstance(interval_ms, int) else interval_ms()

        def start() -> None:
            if not self._stopped:
                self._loop.run_in_executor(self.workers, work).add_done_callback(finish)

        def finish(done: asyncio.Future[object]) -> None:
            if not done.cancelled() and done.exception() is not None:
                logger.error("%s failed", name, exc_info=done.exception())
            if not self._stopped:
                self._timer.call_later(interval(), start)

        self._timer.call_later(interval() if first_ms is None else first_ms, start)

    def every_on_loop(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        def run() -> None:
            if self._stopped:
                return
            try:
                work()
            except Exception:
                logger.exception("%s failed", name)
            self._timer.call_later(interval_ms, run)

        self._timer.call_later(interval_ms, run)

    def stop(self) -> None:
        """Waits for running tasks."""
        self._stopped = True
        self.workers.shutdown(wait=True, cancel_futures=True)
