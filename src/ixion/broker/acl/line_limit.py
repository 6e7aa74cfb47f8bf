"""Limits the lines of a log that clients can cause: `burst` at once, and `rate` per second after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SHOWN: Final = 200  # characters of a client's text: a name may have 32,767 of them


class LineLimit:
    def __init__(self, monotonic_ms: Callable[[], int], burst: int, rate: int) -> None:
        self._monotonic_ms = monotonic_ms
        self._burst = burst
        self._rate = rate
        self._room = burst * 1_000  # thousandths of lines
        self._at_ms = monotonic_ms()
        self._left_out = 0

    def take(self) -> int | None:
        """None if the line must be left out; otherwise how many were left out since the last one."""
        now_ms = self._monotonic_ms()
        self._room = min(self._burst * 1_000, self._room + (now_ms - self._at_ms) * self._rate)
        self._at_ms = now_ms
        if self._room < 1_000:
            self._left_out += 1
            return None
        self._room -= 1_000
        left_out, self._left_out = self._left_out, 0
        return left_out


def shown(text: str) -> str:
    """`text` on one line, so that a client cannot forge lines of the log."""
    line = text if text.isprintable() else repr(text)[1:-1]
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"
