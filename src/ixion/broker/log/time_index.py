"""`.timeindex`: maps timestamps to offsets.

An entry is 12 bytes: a timestamp in milliseconds (64 bits) and an offset minus the base offset (32 bits). It means that
no record up to this offset is later than the timestamp. Timestamps are strictly ascending, offsets never descend. See
`timestamps` for the search. Sealing a segment adds a last entry with the segment's largest timestamp, which retention
by time and the search across segments use.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import struct
from typing import Final

from ixion._native import i64
from ixion.broker.log.files import Files
from ixion.broker.log.index_file import IndexFile

ENTRY_SIZE: Final = 12

_pack = struct.Struct(">qi").pack
_unpack_from = struct.Struct(">qi").unpack_from


class TimeIndex:
    __slots__ = ("_last", "base_offset", "file")

    def __init__(self, files: Files, path: str, base_offset: int, size: int) -> None:
        self.base_offset = base_offset
        self.file = IndexFile(files, path, ENTRY_SIZE, size)
        self._last: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        return self.file.count

    def is_full(self, max_bytes: int) -> bool:
        # Keep one slot free for the entry that sealing adds.
        return (self.file.count + 2) * ENTRY_SIZE > max_bytes

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) if there is none."""
        if self._last is None:
            if self.file.count:
                timestamp, relative = _unpack_from(self.file.entry(self.file.count - 1))
                if timestamp < 0 or relative < 0:
                    raise self.file.damaged(f"the last entry is ({timestamp}, {relative})")
                self._last = (int(timestamp), self.base_offset + int(relative))
            else:
                self._last = (-1, self.base_offset)
        return self._last

    def load(self) -> None:
        """Reads the file, so that adding an entry needs no disk."""
        self.file.load()
        if self._last is None:
            self.last()

    def append(self, timestamp: int, offset: int) -> None:
        """Adds an entry if its timestamp is later than the last one's."""
        last_timestamp, last_offset = self.last()
        if timestamp > last_timestamp and offset >= last_offset:
            self.file.append(_pack(timestamp, offset - self.base_offset))
            self._last = (timestamp, offset)

    def first_offset_at(self, timestamp: int) -> int:
        """The offset of the first entry at or after `timestamp`; -1 if there is none."""
        low: i64 = 0
        high: i64 = self.file.count
        if not high:
            return -1
        view = self.file.view()
        while low < high:
            middle = (low + high) // 2
            if int(_unpack_from(view, middle * ENTRY_SIZE)[0]) < timestamp:
                low = middle + 1
            else:
                high = middle
        if low == self.file.count:
            return -1
        relative = int(_unpack_from(view, low * ENTRY_SIZE)[1])
        if relative < 0:
            raise self.file.damaged(f"an entry has the relative offset {relative}")
        return self.base_offset + relative

    def truncate(self, offset: int) -> None:
        """Drops all entries at or after `offset`."""
        low: i64 = 0
        high: i64 = self.file.count
        if not high:
            return
        view = self.file.view()
        relative = offset - self.base_offset
        while low < high:
            middle = (low + high) // 2
            if int(_unpack_from(view, middle * ENTRY_SIZE)[1]) < relative:
                low = middle + 1
            else:
                high = middle
        self.file.cut(int(low))
        self._last = None

    def check(self) -> None:
        if self.file.count:
            timestamp, relative = _unpack_from(self.file.entry(self.file.count - 1))
            first_timestamp, first_relative = _unpack_from(self.file.entry(0))
            if timestamp < first_timestamp or relative < first_relative or first_relative < 0:
                raise self.file.damaged(f"the last entry is ({timestamp}, {relative})")

    def entries(self) -> list[tuple[int, int]]:
        view = self.file.view()
        found = []
        for slot in range(self.file.count):
            timestamp, relative = _unpack_from(view, slot * ENTRY_SIZE)
            found.append((int(timestamp), self.base_offset + int(relative)))
        return found
