"""Limits how fast an address may connect: `connection_creation_rate`, for one address or as the default (KIP-612).

The rate is measured over windows, like byte rates. A connection above the quota is not counted; it is held unread for
the throttle time of its address, at most one window, and then closed.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.broker.quota.least_used import LeastUsed
from ixion.broker.quota.limits import DEFAULT
from ixion.broker.quota.quotas import MOST_BYTES, RATE_BYTES
from ixion.broker.quota.rate import Rate


class AddressRates:
    def __init__(self, windows: int, window_ms: int, monotonic_ms: Callable[[], int]) -> None:
        self.bounds: dict[str, float] = {}  # connections per second, by address; DEFAULT: for every other address
        self.refused = 0
        self._windows = windows
        self._window_ms = window_ms
        self._monotonic_ms = monotonic_ms
        self.rates: LeastUsed[str, Rate] = LeastUsed(MOST_BYTES, RATE_BYTES)

    def put(self, address: str, bound: float | None) -> None:
        """Set the quota of an address; None removes it."""
        if bound is None:
            self.bounds.pop(address, None)
        else:
            self.bounds[address] = bound
        if not self.bounds:
            self.rates.clear()

    def arrive(self, address: str) -> int:
        """0: accept the connection. Otherwise close it after this many milliseconds."""
        bounds = self.bounds
        if not bounds:
            return 0
        bound = bounds.get(address, bounds.get(DEFAULT))
        if bound is None:
            return 0
        now_ms = self._monotonic_ms()
        rate = self.rates.get(address, self._new_rate)
        rate.record(1, now_ms)
        per_second, length_ms = rate.measure(now_ms)
        if per_second <= bound:
            return 0
        rate.record(-1, now_ms)
        self.refused += 1
        return min(max(round((per_second - bound) / max(bound, 1e-9) * length_ms), 1), self._window_ms)

    def _new_rate(self) -> Rate:
        return Rate(self._windows, self._window_ms)
