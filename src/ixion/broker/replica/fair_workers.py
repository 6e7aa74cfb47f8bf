"""Worker threads for long work on the bytes of clients, shared out fairly.

The threads take the work of the owners in turn (an owner is a principal, or an address): a client with a hundred
connections delays the work of the others by one of its pieces, not by a hundred. Each connection has one request in
progress, and it is not read meanwhile, so its requests stay in order.

Work for clients that have disconnected still runs, because a producer with acks=0 may send and close. It keeps at most
`ORPHANS_BYTES` in all: beyond that, work that has not begun is dropped with its client.

Loop thread only.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from time import thread_time_ns
from typing import TYPE_CHECKING, Any, Final

from ixion.language.model.pools import MakePool

if TYPE_CHECKING:
    import asyncio

MOST_THREADS: Final = 4
ORPHANS_BYTES: int = 16 << 20


class Work:
    """`run` is called on a thread, then `done` on the loop: with the result, or with what it raised.

    The third argument of `done` is the processor time that it took, in nanoseconds.
    """

    def __init__(
        self, owner: str, size: int, run: Callable[[], Any], done: Callable[[Any, Exception | None, int], None]
    ) -> None:
        self.owner: Final = owner
        self.size: Final = size  # of the client's bytes that it keeps
        self.run: Final = run
        self.done: Final = done
        self.waits = True
        self.orphaned = False


class FairWorkers:
    def __init__(self, loop: asyncio.AbstractEventLoop, make_pool: MakePool) -> None:
        self._loop = loop
        self._make_pool = make_pool
        self._threads: Final = min(MOST_THREADS, max(1, (os.cpu_count() or 2) - 1))
        self._pool: Executor | None = None
        self._running = 0
        self._queues: dict[str, deque[Work]] = {}  # by owner, in the order in which they are served; none is empty
        self.orphans_bytes = 0
        self._stopped = False

    @property
    def waiting(self) -> int:
        return sum(map(len, self._queues.values()))

    def submit(self, work: Work) -> None:
        self._queues.setdefault(work.owner, deque()).append(work)
        self._go_on()

    def leave(self, work: Work) -> None:
        """The client of this work has disconnected."""
        if work.orphaned:
            return
        if work.waits and self.orphans_bytes + work.size > ORPHANS_BYTES:
            self._remove(work)
        else:
            work.orphaned = True
            self.orphans_bytes += work.size

    def drop(self, work: Work) -> None:
        """As `leave`, for work whose result is only for the client."""
        if work.waits:
            self._remove(work)

    def stop(self) -> None:
        """Drop what has not begun. What runs ends on its own; its result is dropped."""
        self._stopped = True
        self._queues.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def _go_on(self) -> None:
        while self._queues and self._running < self._threads and not self._stopped:
            owner = next(iter(self._queues))
            queue = self._queues.pop(owner)
            work = queue.popleft()
            if queue:
                self._queues[owner] = queue  # behind the other owners
            if self._pool is None:
                self._pool = self._make_pool(self._threads, "client-work")
            self._running += 1
            work.waits = False
            self._loop.run_in_executor(self._pool, timed, work.run).add_done_callback(Ended(self, work))

    def _remove(self, work: Work) -> None:
        queue = self._queues[work.owner]
        queue.remove(work)
        if not queue:
            del self._queues[work.owner]

    def ended(self, work: Work, result: Any, error: Exception | None, used_ns: int) -> None:
        self._running -= 1
        if work.orphaned:
            self.orphans_bytes -= work.size
        if not self._stopped:
            self._go_on()
            work.done(result, error, used_ns)


class Ended:
    """What a future of `run_in_executor` calls."""

    def __init__(self, workers: FairWorkers, work: Work) -> None:
        self._workers = workers
        self._work = work

    def __call__(self, future: asyncio.Future[tuple[Any, Exception | None, int]]) -> None:
        if not future.cancelled():
            self._workers.ended(self._work, *future.result())


def timed(run: Callable[[], Any]) -> tuple[Any, Exception | None, int]:
    begun_ns = thread_time_ns()
    try:
        return run(), None, thread_time_ns() - begun_ns
    except Exception as error:
        return None, error, thread_time_ns() - begun_ns
