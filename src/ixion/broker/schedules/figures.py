"""Counters of delayed delivery, for metrics."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000, 3_600_000)


class Figures:
    """Counters over all partitions."""

    def __init__(self) -> None:
        self.accepted = 0
        self.delivered = 0
        self.cancelled = 0
        self.superseded = 0
        self.aborted = 0
        self.rejected = 0
        self.dropped = 0  # records that waited in a deleted topic
        self.orphaned = 0  # notes that were truncated, because the partition lacks what they are about
        self.longest_step_ns = 0  # of a delivery
        self.clock_jumps = 0
        self.failures = 0  # failed deliveries, which are retried
        self.lateness = [0] * (len(BOUNDS_MS) + 1)  # records by how late they were delivered
        self.lateness_sum_ms = 0

    def note_lateness(self, late_ms: int) -> None:
        self.lateness[bisect_left(BOUNDS_MS, late_ms)] += 1
        self.lateness_sum_ms += late_ms
