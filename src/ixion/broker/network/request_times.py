"""How long requests take, by API key: a count, a sum and a histogram each.

The time of a request runs from its last byte until its response is sent, including a wait in a purgatory. Both times
are known anyway, so measuring does not read the clock: a few additions, 30 to 60 ns compiled.

    a Produce of 180 µs: the first bound not below it is 250 µs, so its second bucket counts one more
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion._native import i64

# Upper bounds in ns: fine for the requests of a local broker, coarse for long polls.
BOUNDS_NS: Final[list[int]] = [
    *(100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000, 25_000_000, 50_000_000),
    *(100_000_000, 250_000_000, 500_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000),
    *(30_000_000_000, 60_000_000_000),
]
KEYS: Final = 128  # Kafka's API keys are below it


class ApiTimes:
    def __init__(self) -> None:
        self.count: i64 = 0
        self.sum_ns: i64 = 0
        self.failed: i64 = 0  # requests that could not be decoded or whose handler raised; not in `count`
        self.buckets: list[int] = [0] * (len(BOUNDS_NS) + 1)  # not cumulative; the last is for times above all bounds


class RequestTimes:
    def __init__(self) -> None:
        self._by_key: list[ApiTimes | None] = [None] * KEYS

    def note(self, key: i64, took_ns: i64) -> None:
        times = self._of(key)
        if times is not None:
            times.count += 1
            times.sum_ns += took_ns
            index = 0
            for bound in BOUNDS_NS:
                if took_ns <= i64(bound):
                    break
                index += 1
            times.buckets[index] += 1

    def note_failed(self, key: i64) -> None:
        times = self._of(key)
        if times is not None:
            times.failed += 1

    def by_key(self) -> dict[int, ApiTimes]:
        """The times of each API key that clients have used."""
        return {key: times for key, times in enumerate(self._by_key) if times is not None}

    def _of(self, key: i64) -> ApiTimes | None:
        if key < 0 or key >= KEYS:
            return None
        times = self._by_key[key]
        if times is None:
            times = self._by_key[key] = ApiTimes()
        return times
