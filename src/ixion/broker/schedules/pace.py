"""Leaves the event loop to other clients while a herd is delivered.

Delivering a hundred thousand records that are due in the same millisecond is a second of work. It is done in turns of
one step, of one partition or another. As long as clients produce, a step is small (`STEP` records), the loop looks at
its sockets after each, and a pause of `PAUSE_S` follows every slice of `SLICE` turns. So a produce waits for the rest
of one small step at most, and mostly for none. After a produce we also leave the processor's core for a moment: the
kernel often wakes a client on the core of the process that answered it, and it would wait there until our next pause.
There are no pauses

    in the first `FREE` slices            a few thousand records are delivered before anybody notices
    after `QUIET` slices without produce  no other client needs the loop; steps are larger then, `ALONE` records
    after `MOST` pauses                   what is due has waited long enough, or more is due than pauses leave time for

Deliveries cannot be starved: each turn makes progress, whatever clients do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

STEP: Final = 5  # some 60 µs
ALONE: Final = 32  # some 250 µs
SLICE: Final = 4
PAUSE_S: Final = 0.001  # a sleep of the loop cannot be shorter
FREE: Final = 200
QUIET: Final = 100
MOST: Final = 6_000  # some ten seconds, in which 120,000 records are delivered

Turn = Callable[[], None]


def sched_yield() -> None:
    """Let another process run that is ready to run on our core."""
    if hasattr(os, "sched_yield"):  # not on Windows
        os.sched_yield()


class Pace:
    """For a lane: `begin` is its `call_soon`, `pause` comes between two turns. Loop thread only."""

    def __init__(
        self,
        call_soon: Callable[..., object],
        call_later: Callable[..., object],
        produced: Callable[[], int],
        leave_core: Callable[[], object] = sched_yield,
    ) -> None:
        """`produced`: a count that changes whenever a client has produced."""
        self._call_soon = call_soon
        self._call_later = call_later
        self._produced = produced
        self._leave_core = leave_core
        self._turns = 0  # of the slice
        self._slices = 0  # since the lane was empty
        self._pauses = 0
        self._seen = 0
        self._heed = 0  # slices until we take it that nobody produces any more

    def step(self) -> int:
        """How many records may be delivered in a step."""
        return STEP if self._heed else ALONE

    def begin(self, turn: Turn) -> None:
        """The lane was empty."""
        self._turns = self._slices = self._pauses = self._heed = 0
        self._seen = self._produced()
        self._call_soon(turn)

    def pause(self, turn: Turn) -> None:
        self._look_for_clients()
        self._turns += 1
        if self._turns < SLICE:
            self._let_clients_in(turn)
            return
        self._turns = 0
        self._slices += 1
        self._heed = max(self._heed - 1, 0)
        if self._heed and self._slices > FREE and self._pauses < MOST:
            self._pauses += 1
            self._call_later(PAUSE_S, self._go_on, turn)
        else:
            self._let_clients_in(turn)

    def _look_for_clients(self) -> bool:
        """Whether a client has produced since the last call."""
        produced = self._produced()
        if produced == self._seen:
            return False
        self._seen = produced
        self._heed = QUIET
        return True

    def _let_clients_in(self, turn: Turn) -> None:
        """What is called soon runs before what the sockets have brought meanwhile; what it calls soon, after that."""
        if self._heed:
            self._call_soon(self._call_soon, self._go_on, turn)
        else:
            self._call_soon(turn)

    def _go_on(self, turn: Turn) -> None:
        if self._look_for_clients():
            self._leave_core()
        turn()
