"""Finishes completed operations, as many at a time as fit into a turn of the loop.

One append may complete thousands of fetches, and each of them reads its partitions again and is answered. While there
are few, each is finished at once, in the same turn as the append. Once they have taken `TURN_NS` without a pause, the
rest wait in a queue and the loop runs in between.

    gap    the time since the last one was finished; a gap of more than `GAP_NS` means that the loop did other work

Everything here is called on the loop.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

from ixion.timer.turns import TURN_NS

logger = logging.getLogger(__name__)

GAP_NS: Final = 200_000


class Completions:
    def __init__(self, call_soon: Callable[..., object], clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._call_soon = call_soon
        self._clock_ns = clock_ns
        self._waiting: deque[Callable[[], None]] = deque()
        self._begun_ns = 0
        self._ended_ns = 0

    def run(self, finish: Callable[[], None]) -> None:
        """Finish an operation now, or later in the order of the calls."""
        if self._waiting:
            self._waiting.append(finish)
            return
        now = self._clock_ns()
        if now - self._ended_ns > GAP_NS:
            self._begun_ns = now
        elif now - self._begun_ns > TURN_NS:
            self._waiting.append(finish)
            self._call_soon(self._go_on)
            return
        finish()
        self._ended_ns = self._clock_ns()

    def _go_on(self) -> None:
        begun = self._clock_ns()
        while self._waiting:
            finish = self._waiting.popleft()
            try:
                finish()
            except Exception:
                logger.exception("an operation that had completed could not be finished")
            self._ended_ns = self._clock_ns()
            if self._ended_ns - begun > TURN_NS:
                break
        self._begun_ns = begun
        if self._waiting:
            self._call_soon(self._go_on)
