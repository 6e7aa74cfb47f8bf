"""Applies the notes of accepted records to the state of a partition, in steps that share the turns of the event loop.

A batch of ordinary size is applied at once. The rest of a large batch, or of the commit of a large transaction, waits
in `State.backlog`, and nothing is delivered meanwhile. A step that fails, because a note cannot be read, is retried; it
changes nothing before it has read what it needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ixion.broker.schedules.figures import Figures
from ixion.broker.schedules.state import State
from ixion.timer.lane import Job, Lane
from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1_000


class Backlog:
    """Loop thread only."""

    def __init__(self, name: str, lane: Lane, timer: Timer, figures: Figures, applied: Callable[[], None]) -> None:
        """`applied` is called when the backlog is empty."""
        self._name = name
        self._lane = lane
        self._timer = timer
        self._figures = figures
        self._applied = applied
        self._job: Job | None = None
        self._retry: TimerTask | None = None

    def advance(self, state: State) -> None:
        """Apply the backlog, after something was added to it."""
        if self._job is not None or self._retry is not None:
            return
        try:
            more = self._step(state)
        except Exception as error:
            self._failed(state, error)
            return
        if more:
            self._job = self._lane.run(self._steps(state), lambda _, error: self._done(state, error), at_once=False)
        else:
            self._applied()

    def stop(self) -> None:
        if self._job is not None:
            self._job.cancel()
            self._job = None
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _step(self, state: State) -> bool:
        """Apply one step. True if there is more."""
        before = (state.cancelled, state.superseded)
        try:
            return state.advance_backlog()
        finally:
            self._figures.cancelled += state.cancelled - before[0]
            self._figures.superseded += state.superseded - before[1]

    def _steps(self, state: State) -> Steps[None]:
        while self._step(state):
            yield

    def _done(self, state: State, error: Exception | None) -> None:
        self._job = None
        if error is not None:
            self._failed(state, error)
        elif state.backlog:
            self.advance(state)
        else:
            self._applied()

    def _failed(self, state: State, error: Exception) -> None:
        logger.error("applying accepted delayed records of %s failed, trying again: %s", self._name, error)
        self._retry = self._timer.call_later(RETRY_MS, lambda: self._again(state))

    def _again(self, state: State) -> None:
        self._retry = None
        self.advance(state)
