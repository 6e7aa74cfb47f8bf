"""Logs a fault that repeats once, however often it is tried again.

    complaints.add("orders-0", logging.ERROR, "orders-0 cannot be flushed: %s", error)    logged
    complaints.add("orders-0", logging.ERROR, "orders-0 cannot be flushed: %s", error)    not logged: nothing is new
    complaints.end("orders-0")                                                            it works again

Without this, a thousand partitions that are tried again every second write a thousand lines a second.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final

MOST: Final = 10_000  # subjects; then the oldest is forgotten, and logged again if it still fails


class Complaints:
    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._known: dict[Hashable, str] = {}

    def add(self, about: Hashable, level: int, message: str, *args: object) -> None:
        """Log the message, unless it was the last one about this subject."""
        text = message % args
        if self._known.pop(about, None) != text:
            self._logger.log(level, "%s", text)
        self._known[about] = text
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def end(self, about: Hashable) -> None:
        """The fault is over: the next one is logged."""
        if self._known:
            self._known.pop(about, None)
