"""Which partition a record goes to, exactly as Java's producer decides.

A key goes to `murmur2(key) & 0x7fffffff` modulo the number of partitions, so that the records of one key stay together
whoever sends them: "order-17" hashes to 1 568 318 961, so with six partitions it goes to partition 3.
Without a key the partition is a sticky one: the same until a batch is full, then another at random, so that batches
fill and the load still spreads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

SEED: Final = 0x9747B28C
MIX: Final = 0x5BD1E995
LOW_32: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """The 32 bits of the hash, unsigned."""
    size = len(data)
    hashed = SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        mixed = (int.from_bytes(data[at : at + 4], "little") * MIX) & LOW_32
        mixed ^= mixed >> 24
        hashed = ((hashed * MIX) & LOW_32) ^ ((mixed * MIX) & LOW_32)
    if whole != size:
        hashed = ((hashed ^ int.from_bytes(data[whole:], "little")) * MIX) & LOW_32
    hashed = ((hashed ^ (hashed >> 13)) * MIX) & LOW_32
    return hashed ^ (hashed >> 15)


def keyed_partition(key: bytes, count: int) -> int:
    return (murmur2(key) & POSITIVE) % count


class Sticky:
    """The partition that records of one topic without a key go to at the moment."""

    def __init__(self) -> None:
        self.current = -1

    def choose(self, candidates: Sequence[int]) -> int:
        """Move on to another of the partitions that have a leader."""
        others = [index for index in candidates if index != self.current]
        self.current = others[int.from_bytes(os.urandom(4)) % len(others)] if others else candidates[0]
        return self.current
