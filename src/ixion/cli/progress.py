"""One line on a terminal that is written over and over; nothing at all elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

EVERY_S = 0.2


class ProgressLine:
    def __init__(self, text: Callable[[], str]) -> None:
        """`text` is called a few times a second at most."""
        self._text = text
        self._shown = sys.stderr.isatty()
        self._next_s = 0.0
        self._width = 0

    def step(self) -> None:
        if self._shown and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + EVERY_S
            line = self._text()
            sys.stderr.write("\r" + line.ljust(self._width))
            sys.stderr.flush()
            self._width = len(line)

    def clear(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
