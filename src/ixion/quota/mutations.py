"""Limits how many partitions clients create and delete: `controller_mutation_rate`, with a token bucket per quota.

While the bucket is in debt, clients that support the quota (KIP-599) get THROTTLING_QUOTA_EXCEEDED, and nothing is
taken from the bucket. The changes of older clients are made, and the clients are throttled. Not thread-safe: only the
event loop uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ixion.quota.limits import MUTATION, QuotaLimits
from ixion.quota.quotas import MOST_RATES
from ixion.quota.token_bucket import TokenBucket


class Verdict(NamedTuple):
    accepted: bool
    wait_ms: int  # throttle time of the client


ACCEPTED = Verdict(True, 0)


class Mutations:
    def __init__(self, limits: QuotaLimits, windows: int, window_ms: int, monotonic_ms: Callable[[], int]) -> None:
        self.limits = limits
        self.monotonic_ms = monotonic_ms
        self._windows = windows
        self._window_ms = window_ms
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def record(self, user: str, client_id: str, count: int, strict: bool) -> Verdict:
        """Take `count` changes from the bucket of a client. `strict`: refuse while the bucket is in debt."""
        found = self.limits.find(MUTATION, user, client_id)
        if found is None:
            return ACCEPTED
        now_ms = self.monotonic_ms()
        bucket = self._bucket(found.held_by, found.bound, now_ms)
        tokens = bucket.tokens(found.bound, now_ms)
        if strict and tokens < 0:
            return Verdict(False, round(-tokens / found.bound * 1_000))
        bucket.take(count)
        return ACCEPTED if strict or tokens >= count else Verdict(True, round((count - tokens) / found.bound * 1_000))

    def _bucket(self, key: tuple[str, str], bound: float, now_ms: int) -> TokenBucket:
        bucket = self._buckets.pop(key, None)
        if bucket is None:
            if len(self._buckets) >= MOST_RATES:
                del self._buckets[next(iter(self._buckets))]
            bucket = TokenBucket(self._windows, self._window_ms, bound, now_ms)
        self._buckets[key] = bucket  # last: the most recently used
        return bucket
