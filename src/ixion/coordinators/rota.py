"""Long works of a coordinator that share the turns of the event loop.

Each work is a generator, as `ixion.timer.turns` runs them. However many there are, together they take one turn at a
time, one after the other; a work that is not done when its turn ends goes to the end of the line, so that a long one
holds no short one up. The first turn is taken at once: short work is done when `start` returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from ixion.timer.timer import Timer
from ixion.timer.turns import Steps, Turn, run_turn

Done = Callable[[Exception | None], object]


class Work(NamedTuple):
    steps: Steps[None]
    is_wanted: Callable[[], bool]
    done: Done


class Rota:
    def __init__(self, timer: Timer) -> None:
        self._later: Final = partial(timer.call_later, 0)
        self._works: deque[Work] = deque()
        self._running = False

    def __len__(self) -> int:
        """How many works are not done."""
        return len(self._works)

    def start(self, steps: Steps[None], is_wanted: Callable[[], bool], done: Done) -> None:
        """Calls `done` with the exception that ended the work, or with None; not at all once it is not wanted."""
        self._works.append(Work(steps, is_wanted, done))
        if not self._running:
            self._run()

    def _run(self) -> None:
        self._running = True
        turn = Turn()
        while self._works and not turn.is_over():
            work = self._works.popleft()
            if work.is_wanted():
                self._run_one(work)
        self._running = bool(self._works)
        if self._running:
            self._later(self._run)

    def _run_one(self, work: Work) -> None:
        try:
            if run_turn(work.steps) is None:
                self._works.append(work)
                return
        except Exception as error:
            work.done(error)
        else:
            work.done(None)
