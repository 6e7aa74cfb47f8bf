"""How long clients must wait: what they did is recorded, and compared with the quota that holds for them.

A client that goes too fast waits until its rate would be at the quota if it did nothing meanwhile:
(rate - quota) / quota of the time that the rate is about. For time of the processor it waits one window at most.
Not thread-safe: it belongs to the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.quota.limits import REQUEST, Entity, QuotaLimits
from ixion.quota.rate import Rate

MOST_RATES: Final = 10_000  # remembered; the one that was not used for the longest time goes first


class Quotas:
    def __init__(self, windows: int, window_ms: int, monotonic_ms: Callable[[], int]) -> None:
        self.limits = QuotaLimits()
        self.on_change: Callable[[], None] | None = None  # there are quotas now, or none any more
        self.throttled: dict[str, int] = {}  # how often, by kind
        self._windows = windows
        self._window_ms = window_ms
        self._monotonic_ms = monotonic_ms
        self._rates: dict[tuple[str, str, str], Rate] = {}

    def put(self, entity: Entity, quotas: dict[str, float]) -> None:
        before = self.limits.any
        self.limits.put(entity, quotas)
        if self.limits.any != before and self.on_change is not None:
            self.on_change()

    def record(self, kind: str, user: str, client_id: str, value: float) -> int:
        """Note what a client did; the time in milliseconds for which it must wait."""
        found = self.limits.find(kind, user, client_id)
        if found is None:
            return 0
        now_ms = self._monotonic_ms()
        rate = self._rate((kind, *found.held_by))
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
        """Count a client that must wait."""
        self.throttled[kind] = self.throttled.get(kind, 0) + 1

    def most_at_once(self, kind: str, user: str, client_id: str) -> float | None:
        """What a client may do in all windows together: no single fetch gives more. None: no quota holds for it."""
        found = self.limits.find(kind, user, client_id)
        return None if found is None else found.bound * (self._windows - 1) * self._window_ms / 1_000

    def _rate(self, key: tuple[str, str, str]) -> Rate:
        rate = self._rates.pop(key, None)
        if rate is None:
            if len(self._rates) >= MOST_RATES:
                del self._rates[next(iter(self._rates))]
            rate = Rate(self._windows, self._window_ms)
        self._rates[key] = rate  # at the end: the last that was used
        return rate
