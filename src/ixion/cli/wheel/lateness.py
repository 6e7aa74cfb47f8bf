"""How late tasks ran: a histogram that takes one list slot per 5 % of lateness, however many tasks there were.

Slot 0 holds what was at most 1 µs late; slot i holds what was late by more than 1.05^(i-1) and at most 1.05^i µs.
The last slot, number 380, begins at 107 s and takes everything beyond. A percentile is the upper edge of its slot,
so it is never flattering and at most 5 % too high.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

GROWTH = 1.05
SLOTS = 381
_PER_SLOT = 1 / math.log(GROWTH)


class Lateness:
    """Written by one thread; others read `counts()` at any time."""

    def __init__(self) -> None:
        self._slots = [0] * SLOTS

    def record(self, late_ns: int) -> None:
        slot = math.ceil(math.log(late_ns / 1000) * _PER_SLOT) if late_ns > 1000 else 0
        self._slots[min(slot, SLOTS - 1)] += 1

    def counts(self) -> tuple[int, ...]:
        return tuple(self._slots)


def percentile_ms(counts: Sequence[int], fraction: float) -> float:
    """The lateness that this fraction of the tasks did not exceed; 1.0 is the latest one. 0.0 when there were none."""
    wanted = max(1, math.ceil(sum(counts) * fraction))
    seen = 0
    for slot, count in enumerate(counts):
        seen += count
        if seen >= wanted:
            return GROWTH**slot / 1000
    return 0.0
