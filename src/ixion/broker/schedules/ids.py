"""The newest waiting record of each schedule id, 24 to 48 bytes an id: a hash table in two packed columns.

An id is stored as a keyed hash of 64 bits, which no client can predict. Two ids may share a hash, so the caller
compares the id that is stored with the record.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

EMPTY: Final = -1
REMOVED: Final = -2
LEAST: Final = 8
LAST_SHARD: Final = 1023


class ScheduleIds:
    def __init__(self, key: bytes = b"") -> None:
        self.key: Final = key or os.urandom(16)
        self._shards: dict[int, IdShard] = {}

    def _hash(self, schedule_id: bytes) -> int:
        return int.from_bytes(blake2b(schedule_id, digest_size=8, key=self.key).digest(), "big", signed=True)

    def stored(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Number, counts and columns of each shard."""
        for number, shard in self._shards.items():
            yield number, shard.count, shard.used, shard.columns()

    def restore(self, number: int, count: int, used: int, columns: bytes) -> None:
        """A shard as it was `stored`."""
        shard = self._shards[number] = IdShard()
        shard.restore(count, used, columns)

    @property
    def count(self) -> int:
        return sum(shard.count for shard in self._shards.values())

    def get(self, schedule_id: bytes) -> int:
        """The offset of its record; -1 if none waits."""
        hashed = self._hash(schedule_id)
        shard = self._shards.get((hashed >> 40) & LAST_SHARD)
        return -1 if shard is None else shard.get(hashed)

    def put(self, schedule_id: bytes, offset: int) -> None:
        hashed = self._hash(schedule_id)
        number = (hashed >> 40) & LAST_SHARD
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = IdShard()
        shard.put(hashed, offset)

    def remove(self, schedule_id: bytes, offset: int) -> None:
        """Forget the id if its newest record is the one at `offset`."""
        hashed = self._hash(schedule_id)
        shard = self._shards.get((hashed >> 40) & LAST_SHARD)
        if shard is not None:
            shard.remove(hashed, offset)


class IdShard:
    """A part of the ids: growing one shard takes a few milliseconds at most."""

    __slots__ = ("_hashes", "_mask", "_offsets", "count", "used")

    def __init__(self) -> None:
        self.count = 0
        self.used = 0  # slots that are not EMPTY
        self._make(LEAST)

    def _make(self, size: int) -> None:
        self._mask = size - 1
        self._hashes = array("q", bytes(8 * size))
        self._offsets = array("q", (EMPTY,)) * size

    def columns(self) -> bytes:
        return self._hashes.tobytes() + self._offsets.tobytes()

    def restore(self, count: int, used: int, columns: bytes) -> None:
        size = len(columns) // 16
        if size < LEAST or size & (size - 1) or size * 16 != len(columns):
            raise ValueError(f"no shard has {size} slots")
        self._make(size)
        self._hashes = array("q", columns[: size * 8])
        self._offsets = array("q", columns[size * 8 :])
        self.count, self.used = count, used

    def get(self, hashed: int) -> int:
        slot = self._find(hashed)
        return -1 if slot < 0 else self._offsets[slot]

    def put(self, hashed: int, offset: int) -> None:
        slot = self._find(hashed)
        if slot >= 0:
            self._offsets[slot] = offset
            return
        if (self.used + 1) * 3 > (self._mask + 1) * 2:
            self._grow()
        self._insert(hashed, offset)

    def remove(self, hashed: int, offset: int) -> None:
        slot = self._find(hashed)
        if slot >= 0 and self._offsets[slot] == offset:
            self._offsets[slot] = REMOVED
            self.count -= 1

    def _find(self, hashed: int) -> int:
        slot = hashed & self._mask
        offsets, hashes = self._offsets, self._hashes
        while True:
            offset = offsets[slot]
            if offset == EMPTY:
                return -1
            if offset != REMOVED and hashes[slot] == hashed:
                return slot
            slot = (slot + 1) & self._mask

    def _insert(self, hashed: int, offset: int) -> None:
        slot = hashed & self._mask
        while self._offsets[slot] != EMPTY:
            slot = (slot + 1) & self._mask
        self._hashes[slot] = hashed
        self._offsets[slot] = offset
        self.used += 1
        self.count += 1

    def _grow(self) -> None:
        hashes, offsets = self._hashes, self._offsets
        size = LEAST
        while size < (self.count + 1) * 2:
            size *= 2
        self.count = self.used = 0
        self._make(size)
        for hashed, offset in zip(hashes, offsets, strict=True):
            if offset >= 0:
                self._insert(hashed, offset)
