"""Long jobs on an event loop that share its turns.

A turn of one long job is short, but with a hundred concurrent jobs every other client waits for a hundred turns. The
jobs of a lane together take one turn at a time, however many there are.

    Lane(call_soon)               one job after the other; a waiting job costs only its memory
    Lane(call_soon, fair=True)    a job that is not done after its turn goes to the end of the line, so that a long
                                  job does not delay short ones
    Lane(…, between=pause)        `pause` is called in place of `call_soon` if more turns follow one: it may leave the
                                  loop to others for a while

A free lane begins at once: a short job is done when `run` returns. Loop thread only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, TypeVar

from ixion.timer.payer import PAYER
from ixion.timer.turns import TURN_NS, Steps, run_turn

T = TypeVar("T")


class Job:
    __slots__ = ("_done", "_is_wanted", "_spend", "_steps")

    def __init__(
        self,
        steps: Steps[Any],
        done: Callable[[Any, Exception | None], object],
        is_wanted: Callable[[], bool] | None = None,
    ) -> None:
        self._steps: Steps[Any] | None = steps
        self._done = done
        self._is_wanted = is_wanted
        self._spend = PAYER.current

    @property
    def pending(self) -> bool:
        return self._steps is not None

    def cancel(self) -> None:
        """Stop the job; `done` is not called."""
        self._steps = None

    def turn(self, length_ns: int) -> bool:
        """Run one turn, which is charged to the payer. True if the job is done."""
        spend = self._spend
        if spend is None or spend is PAYER.current:  # the turn in which the job began is measured as a whole
            return self._turn(length_ns)
        before = PAYER.current
        PAYER.current = spend
        begun_ns = perf_counter_ns()
        try:
            return self._turn(length_ns)
        finally:
            PAYER.current = before
            spend(perf_counter_ns() - begun_ns)

    def _turn(self, length_ns: int) -> bool:
        if self._is_wanted is not None and not self._is_wanted():
            self._steps = None
        steps = self._steps
        if steps is None:
            return True
        try:
            result = run_turn(steps, length_ns)
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
    def __init__(
        self,
        call_soon: Callable[..., object],
        *,
        fair: bool = False,
        turn_ns: int = TURN_NS,
        between: Callable[..., object] | None = None,
    ) -> None:
        self._call_soon = call_soon
        self._between = call_soon if between is None else between
        self._turn_ns = turn_ns
        self._fair = fair
        self._jobs: deque[Job] = deque()
        self._busy = False

    @property
    def waiting(self) -> int:
        """How many jobs are not done."""
        return len(self._jobs)

    def run(
        self,
        steps: Steps[T],
        done: Callable[[T | None, Exception | None], object],
        is_wanted: Callable[[], bool] | None = None,
        *,
        at_once: bool = True,
    ) -> Job:
        """`done` gets the result, or the exception that ended the job.

        `is_wanted` is called before each turn. If it returns False the job ends, and `done` is not called. Without
        `at_once` the job begins in a later turn: for a caller that has used up its own turn.
        """
        job = Job(steps, done, is_wanted)
        self._jobs.append(job)
        if not self._busy:
            if at_once:
                self._turn()
            else:
                self._wake()
        return job

    def begin(self, steps: Steps[T], done: Callable[[T | None, Exception | None], object]) -> None:
        """As `run`, but take the first turn at once even if other jobs wait: a short job overtakes them."""
        job = Job(steps, done)
        if not job.turn(self._turn_ns):
            self._jobs.append(job)
            if not self._busy:
                self._wake()

    def _wake(self) -> None:
        self._busy = True
        self._call_soon(self._turn)

    def _turn(self) -> None:
        self._busy = True  # jobs that `done` adds wait for their turn
        jobs = self._jobs
        job = jobs.popleft()
        over = True  # also if `done` raises: that must not stop the other jobs
        try:
            over = job.turn(self._turn_ns)
        finally:
            if not over:
                if self._fair:
                    jobs.append(job)
                else:
                    jobs.appendleft(job)
            self._busy = len(jobs) > 0
            if jobs:
                self._between(self._turn)
