"""The newest waiting record of each schedule id, 24 to 48 bytes an id: a hash table in two packed columns.

An id is known by a hash of 64 bits that no client can foresee. Two ids may share a hash: the caller compares the id
that is stored with the record.
"""

from __future__ import annotations

from array import array
from typing import Final

EMPTY: Final = -1
REMOVED: Final = -2
LEAST: Final = 8
LAST_SHARD: Final = 1023


class ScheduleIds:
    def __init__(self) -> None:
        self._shards: dict[int, Shard] = {}

    @property
    def count(self) -> int:
        return sum(shard.count for shard in self._shards.values())

    def get(self, schedule_id: bytes) -> int:
        """The offset of its record; -1 if none waits."""
        hashed = hash(schedule_id)
        shard = self._shards.get((hashed >> 40) & LAST_SHARD)
        return -1 if shard is None else shard.get(hashed)

    def put(self, schedule_id: bytes, offset: int) -> None:
        hashed = hash(schedule_id)
        number = (hashed >> 40) & LAST_SHARD
        shard = self._shards.get(number)
        if shard is None:
            shard = self._shards[number] = Shard()
        shard.put(hashed, offset)

    def remove(self, schedule_id: bytes, offset: int) -> None:
        """Forget the id if its newest record is that one."""
        hashed = hash(schedule_id)
        shard = self._shards.get((hashed >> 40) & LAST_SHARD)
        if shard is not None:
            shard.remove(hashed, offset)


class Shard:
    """A part of the ids, so that making room for more takes a few milliseconds at most."""

    __slots__ = ("_hashes", "_mask", "_offsets", "_used", "count")

    def __init__(self) -> None:
        self.count = 0
        self._used = 0  # slots that are not EMPTY
        self._make(LEAST)

    def _make(self, size: int) -> None:
        self._mask = size - 1
        self._hashes = array("q", bytes(8 * size))
        self._offsets = array("q", (EMPTY,)) * size

    def get(self, hashed: int) -> int:
        slot = self._find(hashed)
        return -1 if slot < 0 else self._offsets[slot]

    def put(self, hashed: int, offset: int) -> None:
        slot = self._find(hashed)
        if slot >= 0:
            self._offsets[slot] = offset
            return
        if (self._used + 1) * 3 > (self._mask + 1) * 2:
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
        self._used += 1
        self.count += 1

    def _grow(self) -> None:
        hashes, offsets = self._hashes, self._offsets
        size = LEAST
        while size < (self.count + 1) * 2:
            size *= 2
        self.count = self._used = 0
        self._make(size)
        for hashed, offset in zip(hashes, offsets, strict=True):
            if offset >= 0:
                self._insert(hashed, offset)
