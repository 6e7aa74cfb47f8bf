"""A token bucket, as Kafka uses it for changes of topics (KIP-599).

Tokens are added at the rate of the quota, up to the number of all windows together. A change takes one token per
partition, even if the bucket has fewer: then no change is accepted until the debt is paid. With 11 windows of 1 s and 2
changes per second:

    t = 0 s   22 tokens   a topic of 30 partitions is made   -8 tokens
    t = 1 s   -6 tokens   the next one is refused; its client waits 6 / 2 = 3 s
"""

from __future__ import annotations


class TokenBucket:
    __slots__ = ("_burst_s", "_filled_ms", "_tokens")

    def __init__(self, windows: int, window_ms: int, bound: float, now_ms: int) -> None:
        self._burst_s = windows * window_ms / 1_000
        self._tokens = bound * self._burst_s
        self._filled_ms = now_ms

    def tokens(self, bound: float, now_ms: int) -> float:
        """The tokens now; negative: a debt. `bound` is the current quota."""
        passed_s = (now_ms - self._filled_ms) / 1_000
        self._tokens = min(bound * self._burst_s, self._tokens + bound * passed_s)
        self._filled_ms = now_ms
        return self._tokens

    def take(self, count: float) -> None:
        self._tokens -= count
