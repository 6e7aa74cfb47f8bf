"""The offset map of compaction: the last offset of each key, in a bounded amount of memory.

It stores 16 bytes of a key's hash and 8 bytes of offset: 24 bytes per key. The table uses open addressing: a search
starts at the slot given by the hash and goes on until it finds the key or an empty slot, so the table counts as full at
90 %. With 128 MiB, Kafka's default, it holds five million keys. Two keys with the same 128 bits of hash would count as
one; among 2**40 keys that has a chance of one in 2**48.

A table begins with 16,384 slots, 384 KiB, and grows fourfold when it is full, up to the given memory: few logs have
millions of keys. The last step may be larger, so that the old table, which is copied, takes at most half as much again.

    slot   0 | hash of "a" | 17        an offset is stored plus one, so that zero bytes mean an empty slot
           1 |             |  0
           2 | hash of "b" |  9
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import Final

from ixion._native import i64
from ixion.broker.log.breather import Breather

ENTRY_SIZE: Final = 24
LOAD: Final = 0.9
FIRST: Final = 1 << 14  # slots
GROWTH: Final = 4

_slot_of = struct.Struct(">Q").unpack_from
_offset_at = struct.Struct(">q").unpack_from
_put_offset = struct.Struct(">q").pack_into


def room_of(slots: int, load: float) -> int:
    """How many keys a table takes. One slot stays empty, so that every search ends."""
    return min(max(int(slots * load), 1), slots - 1)


class OffsetMap:
    """For one thread at a time, and not the event loop's: growing takes a second for millions of keys."""

    def __init__(self, memory_bytes: int, load: float = LOAD) -> None:
        self.most_slots: Final = memory_bytes // ENTRY_SIZE
        if self.most_slots < 2:
            raise ValueError(f"an offset map needs at least {2 * ENTRY_SIZE} bytes, not {memory_bytes}")
        self.capacity: Final = room_of(self.most_slots, load)
        self._load: Final = load
        self.clear()

    def clear(self) -> None:
        self._make_table(min(FIRST, self.most_slots))
        self.size = 0
        self.latest = -1  # the map covers the log up to this offset

    @property
    def memory_bytes(self) -> int:
        return len(self._table)

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    def put(self, key: bytes, offset: int) -> None:
        digest = blake2b(key, digest_size=16).digest()
        at = self._find(digest)
        if _offset_at(self._table, at + 16)[0] == 0:
            if self.is_full:
                raise ValueError(f"the offset map holds {self.size} keys and is full")
            if self.size >= self._room:
                self._grow()
                at = self._find(digest)
            self._table[at : at + 16] = digest
            self.size += 1
        _put_offset(self._table, at + 16, offset + 1)

    def get(self, key: bytes) -> int:
        """The last offset of the key; -1 if it is not in the map."""
        return int(_offset_at(self._table, self._find(blake2b(key, digest_size=16).digest()) + 16)[0]) - 1

    def _find(self, digest: bytes) -> int:
        """The byte index of the key's slot, or of the empty slot where it belongs."""
        table = self._table
        size: i64 = self._slots * ENTRY_SIZE
        at: i64 = (int(_slot_of(digest)[0]) % self._slots) * ENTRY_SIZE
        while True:
            found = table[at : at + 16]
            if found == digest or _offset_at(table, at + 16)[0] == 0:
                return int(at)
            at += ENTRY_SIZE
            if at == size:
                at = 0

    def _make_table(self, slots: int) -> None:
        self._table = bytearray(slots * ENTRY_SIZE)
        self._slots = slots
        self._room = room_of(slots, self._load)

    def _grow(self) -> None:
        old = self._table
        slots = self._slots * GROWTH
        self._make_table(slots if slots * 2 <= self.most_slots else self.most_slots)
        breather = Breather()
        at: i64 = 0
        end: i64 = len(old)
        while at < end:
            breather.step()
            if _offset_at(old, at + 16)[0] != 0:
                to = self._find(bytes(old[at : at + 16]))
                self._table[to : to + ENTRY_SIZE] = old[at : at + ENTRY_SIZE]
            at += ENTRY_SIZE
