"""Which partition a record goes to, exactly as Java's producer decides.

A key goes to `murmur2(key) & 0x7fffffff` modulo the number of partitions, so that the records of one key stay together
whichever client sends them: "order-17" hashes to 1 568 318 961, so with six partitions it goes to partition 3.

Without a key the partition is sticky (KIP-794): the same until `batch.size` bytes have gone to it, then another. Bytes
count, not batches: a slow broker whose batches are small because they linger must not get more of them than the others.
The next partition is random, and the less likely the more batches wait for it:

    batches in the queues  [0, 3, 1]    weights [4, 1, 3]    so 4 of 8, 1 of 8, 3 of 8
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from ixion._native import i64

SEED: Final = 0x9747B28C
MIX: Final = 0x5BD1E995
LOW_32: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF

# A partitioner of the caller's own: topic, key, value, number of partitions; None means the sticky partition.
Partitioner = Callable[[str, bytes | None, bytes | None, int], int | None]


def murmur2(data: bytes) -> int:
    """The 32 bits of the hash, unsigned."""
    size: i64 = len(data)
    hashed: i64 = SEED ^ size
    at: i64 = 0
    while at + 4 <= size:
        mixed: i64 = data[at] | (data[at + 1] << 8) | (data[at + 2] << 16) | (data[at + 3] << 24)
        mixed = (mixed * MIX) & LOW_32
        mixed ^= mixed >> 24
        hashed = ((hashed * MIX) & LOW_32) ^ ((mixed * MIX) & LOW_32)
        at += 4
    if at < size:
        shift: i64 = 0
        while at < size:
            hashed ^= data[at] << shift
            shift += 8
            at += 1
        hashed = (hashed * MIX) & LOW_32
    hashed = ((hashed ^ (hashed >> 13)) * MIX) & LOW_32
    return hashed ^ (hashed >> 15)


def keyed_partition(key: bytes, count: int) -> int:
    return (murmur2(key) & POSITIVE) % count


@final
class Sticky:
    """The present partition for records of one topic without a key."""

    def __init__(self) -> None:
        self.current: i64 = -1
        self.produced: i64 = 0  # bytes to it

    def choose(self, candidates: Sequence[int], queues: Sequence[int] | None, random: float) -> None:
        """Choose another partition with a leader; `queues` has the number of waiting batches of each."""
        self.produced = 0
        if len(candidates) == 1:
            self.current = candidates[0]
            return
        if queues is None:
            self.current = candidates[int(random * len(candidates))]
            return
        longest = max(queues)
        left = random * sum(longest + 1 - each for each in queues)
        for number, each in zip(candidates, queues, strict=True):
            left -= longest + 1 - each
            if left < 0:
                self.current = number
                return
        self.current = candidates[-1]
