"""Kafka's replication quotas, for leaders and followers: how fast replicas may catch up.

A partition is limited if its topic names this broker's replica in leader.replication.throttled.replicas or
follower.replication.throttled.replicas (`0:1,3:2`, or `*`), and only while the copy is not in sync, because acks=all
waits for in-sync replicas. A leader above leader.replication.throttled.rate gives such a follower no records; a
follower above follower.replication.throttled.rate leaves the partition out of its fetches. Rates are measured over the
last windows, from the first record on (`quota.rate`): one fetch may exceed the limit, the mean stays below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ixion.broker.quota.rate import Rate

ALL = "*"


class ReplicationQuota:
    def __init__(self, limit: Callable[[], int], clock_ms: Callable[[], int], windows: int, window_ms: int) -> None:
        """`limit` is in bytes per second."""
        self._limit = limit
        self._clock_ms = clock_ms
        self._rate = Rate(windows, window_ms)
        self.throttled = 0  # how often a partition had to wait

    def record(self, size: int) -> None:
        self._rate.record(size, self._clock_ms())

    def is_exceeded(self) -> bool:
        if self._rate.measure_simply(self._clock_ms()) <= self._limit():
            return False
        self.throttled += 1
        return True


def names_replica(words: Iterable[str], number: int, broker_id: int) -> bool:
    """Whether a list of throttled replicas names this one."""
    return any(word in (ALL, f"{number}:{broker_id}") for word in words)
