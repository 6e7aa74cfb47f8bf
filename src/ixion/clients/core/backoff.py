"""Pauses that double from `first_s` to `most_s`, with a jitter of 20 %.

    first 0.1, most 1.0:   0.1  0.2  0.4  0.8  1.0  1.0 …     each times 0.8 … 1.2

The jitter keeps many clients that lost the same broker from reconnecting at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

JITTER: Final = 0.2

Random = Callable[[], float]  # of [0, 1)


class Backoff:
    def __init__(self, first_s: float, most_s: float, random: Random) -> None:
        self._first_s = first_s
        self._most_s = max(most_s, first_s)
        self._random = random

    def pause_s(self, failures: int) -> float:
        """The pause after this many failures in a row; 1 is the first."""
        plain = min(self._first_s * 2.0 ** min(max(failures, 1) - 1, 30), self._most_s)
        return plain * (1 - JITTER + 2 * JITTER * self._random())
