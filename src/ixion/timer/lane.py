"""Long works on an event loop, one after the other.

A turn of one long work is short, but a hundred of them side by side are a hundred turns before anybody else has one. In
a lane only the first works; the others wait, and cost nothing meanwhile but what they hold. Loop thread only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from ixion.timer.turns import Steps, run_turn

T = TypeVar("T")


class Job:
    __slots__ = ("_done", "_steps")

    def __init__(self, steps: Steps[Any], done: Callable[[Any, Exception | None], object]) -> None:
        self._steps: Steps[Any] | None = steps
        self._done = done

    @property
    def pending(self) -> bool:
        return self._steps is not None

    def cancel(self) -> None:
        """Do no more of it; `done` is not called."""
        self._steps = None

    def turn(self) -> bool:
        """True if that was the end."""
        steps = self._steps
        if steps is None:
            return True
        try:
            result = run_turn(steps)
        except Exception as error:
            self._steps = None
            self._done(None, error)
            return True
        if result is None:
            return False
        self._steps = None
        self._done(result[0], None)
        return True


class Lane:
    def __init__(self, call_soon: Callable[..., object]) -> None:
        self._call_soon = call_soon
        self._jobs: deque[Job] = deque()
        self._busy = False

    @property
    def waiting(self) -> int:
        return len(self._jobs)

    def run(self, steps: Steps[T], done: Callable[[T | None, Exception | None], object]) -> Job:
        """`done` gets the result, or the exception that ended the work. A free lane begins at once."""
        job = Job(steps, done)
        self._jobs.append(job)
        if not self._busy:
            self._turn()
        return job

    def _turn(self) -> None:
        self._busy = True  # what `done` adds waits for its turn
        jobs = self._jobs
        try:
            if jobs[0].turn():
                jobs.popleft()
        except BaseException:
            jobs.popleft()  # `done` raised: that is its own fault, and no reason to stop the others
            raise
        finally:
            if jobs:
                self._call_soon(self._turn)
            else:
                self._busy = False
