"""How fast an address may connect: `connection_creation_rate`, for one address or for each of the others (KIP-612).

The rate is measured over windows, as that of bytes. A connection over it does not count; it is held unread for the time
that its address would have to wait, one window at most, and closed then.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.quota.limits import DEFAULT
from ixion.quota.quotas import MOST_RATES
from ixion.quota.rate import Rate


class AddressRates:
    def __init__(self, windows: int, window_ms: int, monotonic_ms: Callable[[], int]) -> None:
        self.bounds: dict[str, float] = {}  # connections a second, by address; DEFAULT: of each that is not named
        self.refused = 0
        self._windows = windows
        self._window_ms = window_ms
        self._monotonic_ms = monotonic_ms
        self._rates: dict[str, Rate] = {}

    def put(self, address: str, bound: float | None) -> None:
        """None: there is no quota for the address any more."""
        if bound is None:
            self.bounds.pop(address, None)
        else:
            self.bounds[address] = bound
        if not self.bounds:
            self._rates.clear()

    def arrive(self, address: str) -> int:
        """0: the connection may come in. Otherwise the time in milliseconds after which it is closed."""
        bounds = self.bounds
        if not bounds:
            return 0
        bound = bounds.get(address, bounds.get(DEFAULT))
        if bound is None:
            return 0
        now_ms = self._monotonic_ms()
        rate = self._rate(address)
        rate.record(1, now_ms)
        per_second, length_ms = rate.measure(now_ms)
        if per_second <= bound:
            return 0
        rate.record(-1, now_ms)
        self.refused += 1
        return min(max(round((per_second - bound) / max(bound, 1e-9) * length_ms), 1), self._window_ms)

    def _rate(self, address: str) -> Rate:
        rate = self._rates.pop(address, None)
        if rate is None:
            if len(self._rates) >= MOST_RATES:
                del self._rates[next(iter(self._rates))]
            rate = Rate(self._windows, self._window_ms)
        self._rates[address] = rate
        return rate
