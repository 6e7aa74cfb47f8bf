"""Leaves the event loop to other clients while a herd is delivered.

A hundred thousand records that are due in the same millisecond are a second of work. It is done in slices of
`SLICE_NS`. As long as clients produce, a pause of `PAUSE_S` follows each slice: a produce then waits for the rest of
one slice at most, and mostly for none. If nobody has produced during `QUIET` slices there are no pauses.

Deliveries cannot be starved. A slice delivers at least one step, and after `MOST` pauses the rest comes without any:
what is due has waited long enough then, or more is due in a second than pauses leave time for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SLICE_NS: Final = 100_000  # and the rest of a step: a quarter of a millisecond at most
PAUSE_S: Final = 0.001
QUIET: Final = 100  # slices: 15 ms, or with pauses 120 ms
MOST: Final = 8_000  # pauses, some ten seconds, in which 160,000 records are delivered


class Pace:
    """For a lane: `begin` is its `call_soon`, `pause` comes between two turns. Loop thread only."""

    def __init__(
        self,
        call_soon: Callable[..., object],
        call_later: Callable[..., object],
        produced: Callable[[], int],
    ) -> None:
        """`produced`: a count that changes whenever a client has produced."""
        self._call_soon = call_soon
        self._call_later = call_later
        self._produced = produced
        self._seen = 0
        self._heed = 0  # slices until we take it that nobody produces any more
        self._pauses = 0  # since the lane was empty

    def begin(self, turn: Callable[[], None]) -> None:
        """The lane was empty: a small herd is out before anybody notices."""
        self._pauses = self._heed = 0
        self._seen = self._produced()
        self._call_soon(turn)

    def pause(self, turn: Callable[[], None]) -> None:
        produced = self._produced()
        if produced != self._seen:
            self._seen = produced
            self._heed = QUIET
        elif self._heed:
            self._heed -= 1
        if self._heed and self._pauses < MOST:
            self._pauses += 1
            self._call_later(PAUSE_S, turn)
        else:
            self._call_soon(turn)
