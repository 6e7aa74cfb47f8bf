"""The buckets of all levels, in the order in which they are due.

There are at most a few hundred of them however many tasks wait, so a heap is cheap. Its head is the time at which the
clock must move next.
"""

from __future__ import annotations

import heapq
from typing import Final

from ixion._native import i64
from ixion.timer.bucket import Bucket

NEVER: Final[i64] = 2**63 - 1


class DelayQueue:
    __slots__ = ("_heap", "_pushed", "head_ms")

    def __init__(self) -> None:
        # (expiration, serial number, bucket); the serial number keeps equal expirations in order
        self._heap: list[tuple[int, int, Bucket]] = []
        self._pushed = 0
        self.head_ms: i64 = NEVER  # when the first bucket is due; kept here so that reading it allocates nothing

    def push(self, bucket: Bucket) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (bucket.expiration_ms, self._pushed, bucket))
        self.head_ms = self._heap[0][0]

    def pop(self) -> Bucket:
        bucket = heapq.heappop(self._heap)[2]
        self.head_ms = self._heap[0][0] if self._heap else NEVER
        return bucket

    def clear(self) -> None:
        self._heap.clear()
        self.head_ms = NEVER

    def __len__(self) -> int:
        return len(self._heap)
