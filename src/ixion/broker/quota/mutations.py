"""Limits how many partitions clients create and delete: `controller_mutation_rate`, with a token bucket per quota.

While the bucket is in debt, clients that support the quota (KIP-599) get THROTTLING_QUOTA_EXCEEDED, and nothing is
taken from the bucket. The changes of older clients are made, and the clients are throttled. Not thread-safe: only the
event loop uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ixion.broker.quota.least_used import LeastUsed
from ixion.broker.quota.limits import MUTATION, QuotaLimits
from ixion.broker.quota.quotas import MOST_BYTES, RATE_BYTES
from ixion.broker.quota.token_bucket import TokenBucket


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
        self.buckets: LeastUsed[tuple[str, str], TokenBucket] = LeastUsed(MOST_BYTES, RATE_BYTES)

    def record(self, user: str, client_id: str, count: int, strict: bool) -> Verdict:
        """Take `count` changes from the bucket of a client. `strict`: refuse while the bucket is in debt."""
        found = self.limits.find(MUTATION, user, client_id)
        if found is None:
            return ACCEPTED
        now_ms = self.monotonic_ms()
        make = partial(TokenBucket, self._windows, self._window_ms, found.bound, now_ms)
        bucket = self.buckets.get(found.held_by, make)
        tokens = bucket.tokens(found.bound, now_ms)
        if strict and tokens < 0:
            return Verdict(False, round(-tokens / found.bound * 1_000))
        bucket.take(count)
        return ACCEPTED if strict or tokens >= count else Verdict(True, round((count - tokens) / found.bound * 1_000))
