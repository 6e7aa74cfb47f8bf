"""The timers that compete, each with the inner loops of the load written out for it.

The loops are repeated per timer on purpose: an adapter in between would cost as much as what is measured.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any, Protocol

from ixion.timer import LoopTimer, SystemTimer, TimerTask

REAPER_POLL_MS = 200
MS = 1_000_000  # nanoseconds


class Idle(TimerTask):
    """The task of the add and cancel loads; it never comes to run."""

    def run(self) -> None:
        pass


class Competitor(Protocol):
    ran: list[int]

    def fill(self, delays: Iterable[int]) -> None:
        """Add tasks that stay."""

    def add_and_cancel(self, delays: Iterable[int]) -> None: ...

    def prepare_again(self, delays: Iterable[int]) -> None:
        """Add tasks that are about to be moved."""

    def add_again(self) -> None:
        """Move each of the prepared tasks by adding it again."""

    def count(self, delays: Iterable[int]) -> None:
        """Add tasks that append to `ran`."""

    def note(self, delays: Iterable[int]) -> None:
        """Add tasks that append to `ran` how many nanoseconds after their time they ran."""

    def close(self) -> None: ...


class Ixion:
    """Either of our timers, used from one thread."""

    def __init__(self, timer: SystemTimer | LoopTimer) -> None:
        self.timer = timer
        self.ran: list[int] = []
        self._waiting: Sequence[Idle] = ()
        append, clock = self.ran.append, time.monotonic_ns

        class Counted(TimerTask):
            def run(self) -> None:
                append(0)

        class Timed(TimerTask):
            def __init__(self, delay_ms: int) -> None:
                super().__init__(delay_ms)
                self.due_ns = clock() + delay_ms * MS

            def run(self) -> None:
                append(clock() - self.due_ns)

        self._counted = Counted
        self._timed = Timed

    def fill(self, delays: Iterable[int]) -> None:
        add = self.timer.add
        for delay in delays:
            add(Idle(delay))

    def add_and_cancel(self, delays: Iterable[int]) -> None:
        add = self.timer.add
        for delay in delays:
            task = Idle(delay)
            add(task)
            task.cancel()

    def add_and_cancel_made(self, tasks: Iterable[Idle]) -> None:
        """The same with tasks that were made before: what the timer itself costs."""
        add = self.timer.add
        for task in tasks:
            add(task)
            task.cancel()

    def prepare_again(self, delays: Iterable[int]) -> None:
        self._waiting = [Idle(delay) for delay in delays]
        self.add_again()

    def add_again(self) -> None:
        add = self.timer.add
        for task in self._waiting:
            add(task)

    def count(self, delays: Iterable[int]) -> None:
        add, counted = self.timer.add, self._counted
        for delay in delays:
            add(counted(delay))

    def note(self, delays: Iterable[int]) -> None:
        add, timed = self.timer.add, self._timed
        for delay in delays:
            add(timed(delay))

    def close(self) -> None:
        self.timer.shutdown()


class Threaded(Ixion):
    """SystemTimer with the thread that turns its wheel."""

    timer: SystemTimer

    def __init__(self) -> None:
        super().__init__(SystemTimer("bench"))
        self._running = True
        self._reaper = threading.Thread(target=self._reap, daemon=True)
        self._reaper.start()

    def _reap(self) -> None:
        while self._running:
            self.timer.advance_clock(REAPER_POLL_MS)

    def close(self) -> None:
        self._running = False
        self._reaper.join()
        super().close()


class Looped(Ixion):
    """LoopTimer on the running loop."""

    def __init__(self) -> None:
        super().__init__(LoopTimer("bench"))


def _note(ran: list[int], due_ns: int) -> None:
    ran.append(time.monotonic_ns() - due_ns)


class Heap:
    """The textbook timer of a Python program: a heap of entries, a cancelled one marked and dropped when it is due."""

    def __init__(self) -> None:
        self._heap: list[list[Any]] = []  # when, number, what: a list, so that cancelling can empty the third
        self._number = count()
        self._waiting: list[tuple[int, list[Any]]] = []
        self.ran: list[int] = []
        self._task = asyncio.get_running_loop().create_task(self._run())

    def _push(self, delay_ms: int, function: Callable[[], object] | None) -> list[Any]:
        entry: list[Any] = [time.monotonic_ns() + delay_ms * MS, next(self._number), function]
        heapq.heappush(self._heap, entry)
        return entry

    def fill(self, delays: Iterable[int]) -> None:
        for delay in delays:
            self._push(delay, None)

    def add_and_cancel(self, delays: Iterable[int]) -> None:
        for delay in delays:
            self._push(delay, self.close)[2] = None

    def prepare_again(self, delays: Iterable[int]) -> None:
        self._waiting = [(delay, self._push(delay, self.close)) for delay in delays]

    def add_again(self) -> None:
        waiting = self._waiting
        for index, (delay, entry) in enumerate(waiting):
            entry[2] = None
            waiting[index] = (delay, self._push(delay, self.close))

    def count(self, delays: Iterable[int]) -> None:
        function = partial(self.ran.append, 0)
        for delay in delays:
            self._push(delay, function)

    def note(self, delays: Iterable[int]) -> None:
        for delay in delays:
            self._push(delay, partial(_note, self.ran, time.monotonic_ns() + delay * MS))

    async def _run(self) -> None:
        heap = self._heap
        while True:
            now = time.monotonic_ns()
            while heap and heap[0][0] <= now:
                function = heapq.heappop(heap)[2]
                if function is not None:
                    function()
            await asyncio.sleep(0.0005)

    def close(self) -> None:
        self._task.cancel()


class CallLater:
    """What asyncio itself offers."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[float, asyncio.TimerHandle]] = []
        self.ran: list[int] = []

    def fill(self, delays: Iterable[int]) -> None:
        call_later = self._loop.call_later
        for delay in delays:
            call_later(delay / 1000, self.close)

    def add_and_cancel(self, delays: Iterable[int]) -> None:
        call_later = self._loop.call_later
        for delay in delays:
            call_later(delay / 1000, self.close).cancel()

    def prepare_again(self, delays: Iterable[int]) -> None:
        self._waiting = [(delay / 1000, self._loop.call_later(delay / 1000, self.close)) for delay in delays]

    def add_again(self) -> None:
        call_later = self._loop.call_later
        waiting = self._waiting
        for index, (delay, handle) in enumerate(waiting):
            handle.cancel()
            waiting[index] = (delay, call_later(delay, self.close))

    def count(self, delays: Iterable[int]) -> None:
        call_later, append = self._loop.call_later, self.ran.append
        for delay in delays:
            call_later(delay / 1000, append, 0)

    def note(self, delays: Iterable[int]) -> None:
        call_later = self._loop.call_later
        for delay in delays:
            call_later(delay / 1000, _note, self.ran, time.monotonic_ns() + delay * MS)

    def close(self) -> None:
        pass
