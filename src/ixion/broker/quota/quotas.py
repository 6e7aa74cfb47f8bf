"""Computes the throttle time of clients: records what they do and compares it with their quota.

A client above its quota waits until its rate would be at the quota if it did nothing meanwhile: (rate - quota) / quota
of the measured time. For processor time it waits at most one window. Not thread-safe: only the event loop uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.broker.quota.least_used import LeastUsed
from ixion.broker.quota.limits import REQUEST, Entity, QuotaLimits
from ixion.broker.quota.rate import Rate

# Of rates, beside the names of their clients: a sample for each window, and the table's own.
RATE_BYTES: Final = 1_500
MOST_BYTES: Final = 16 << 20


class Quotas:
    def __init__(self, windows: int, window_ms: int, monotonic_ms: Callable[[], int]) -> None:
        self.limits = QuotaLimits()
        self.on_change: Callable[[], None] | None = None  # called when the first quota is set or the last removed
        self.throttled: dict[str, int] = {}  # number of throttled requests, by kind
        self._windows = windows
        self._window_ms = window_ms
        self._monotonic_ms = monotonic_ms
        self.rates: LeastUsed[tuple[str, str, str], Rate] = LeastUsed(MOST_BYTES, RATE_BYTES)

    def put(self, entity: Entity, quotas: dict[str, float]) -> None:
        before = self.limits.any
        self.limits.put(entity, quotas)
        if self.limits.any != before and self.on_change is not None:
            self.on_change()

    def record(self, kind: str, user: str, client_id: str, value: float) -> int:
        """Record what a client did; returns its throttle time in milliseconds."""
        found = self.limits.find(kind, user, client_id)
        if found is None:
            return 0
        now_ms = self._monotonic_ms()
        rate = self.rates.get((kind, *found.held_by), self._new_rate)
        rate.record(value, now_ms)
        per_second, length_ms = rate.measure(now_ms)
        if per_second <= found.bound:
            return 0
        wait_ms = round((per_second - found.bound) / found.bound * length_ms)
        if kind == REQUEST:
            wait_ms = min(wait_ms, self._window_ms)
        if wait_ms > 0:
            self.note(kind)
        return wait_ms

    def note(self, kind: str) -> None:
        """Count a throttled request."""
        self.throttled[kind] = self.throttled.get(kind, 0) + 1

    def most_at_once(self, kind: str, user: str, client_id: str) -> float | None:
        """The quota times all windows: no single fetch returns more. None: the client has no quota."""
        found = self.limits.find(kind, user, client_id)
        return None if found is None else found.bound * (self._windows - 1) * self._window_ms / 1_000

    def _new_rate(self) -> Rate:
        return Rate(self._windows, self._window_ms)
