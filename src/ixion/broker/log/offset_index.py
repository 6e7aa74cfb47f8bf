"""`.index`: maps offsets to positions in the segment, with about one entry per index.interval.bytes of log.

An entry is 8 bytes, two big-endian numbers of 32 bits: the last offset of a batch minus the segment's base offset, and
a position from which this offset is found. In a segment with base offset 100

    (19, 0)  (47, 4200)  (80, 8800)

says that the batches up to 119 start at 0, those up to 147 at 4200 and those up to 180 at 8800. A search for 150 finds
the last entry that is not greater, (47, 4200), and walks the batches from there. Entries rise strictly.

Not thread-safe by itself: the log that owns it holds its lock.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import struct
from typing import Final

from librt.strings import read_i32_be

from ixion._native import i64
from ixion.broker.log.files import Files
from ixion.broker.log.index_file import IndexFile

ENTRY_SIZE: Final = 8
MAX_RELATIVE: Final = (1 << 31) - 1

_pack = struct.Struct(">ii").pack
_unpack_from = struct.Struct(">ii").unpack_from


class OffsetIndex:
    __slots__ = ("base_offset", "file", "last_offset")

    def __init__(self, files: Files, path: str, base_offset: int, size: int) -> None:
        self.base_offset = base_offset
        self.file = IndexFile(files, path, ENTRY_SIZE, size)
        self.last_offset = -1  # of the last entry; -1 while it is not known

    @property
    def count(self) -> int:
        return self.file.count

    def is_full(self, max_bytes: int) -> bool:
        return (self.file.count + 1) * ENTRY_SIZE > max_bytes

    def append(self, offset: int, position: int) -> None:
        if self.file.count and offset <= self._last():
            return  # no new offset since the last entry
        self.file.append(_pack(offset - self.base_offset, position))
        self.last_offset = offset

    def load(self) -> None:
        """Reads the file, so that adding an entry needs no disk."""
        self.file.load()
        if self.last_offset < 0 and self.file.count:
            self._last()

    def lookup(self, offset: int) -> int:
        """The position from which to look for `offset`."""
        slot = self._slot(offset - self.base_offset, 0)
        if slot < 0:
            return 0
        return self._believe(int(_unpack_from(self.file.view(), slot * ENTRY_SIZE)[1]))

    def floor_position(self, position: int) -> int:
        """The last indexed position up to `position`."""
        slot = self._slot(position, 1)
        if slot < 0:
            return 0
        return self._believe(int(_unpack_from(self.file.view(), slot * ENTRY_SIZE)[1]))

    def truncate(self, offset: int) -> None:
        """Drops all entries at or after `offset`."""
        self.file.cut(int(self._slot(offset - self.base_offset - 1, 0)) + 1)
        self.last_offset = -1

    def check(self, log_size: int) -> None:
        """Checks the last entry only, which is cheap. Other wrong entries show when a lookup finds no batch there."""
        if self.file.count:
            relative, position = _unpack_from(self.file.entry(self.file.count - 1))
            if relative < 0 or not 0 <= position < max(log_size, 1):
                raise self.file.damaged(f"the last entry is ({relative}, {position})")

    def entries(self) -> list[tuple[int, int]]:
        view = self.file.view()
        found = []
        for slot in range(self.file.count):
            relative, position = _unpack_from(view, slot * ENTRY_SIZE)
            found.append((self.base_offset + int(relative), int(position)))
        return found

    def last_position(self) -> int:
        """The position of the last entry; 0 if there is none."""
        return self._believe(int(_unpack_from(self.file.entry(self.file.count - 1))[1])) if self.file.count else 0

    def _believe(self, position: int) -> int:
        if position < 0:
            raise self.file.damaged(f"an entry has position {position}")
        return position

    def _last(self) -> int:
        if self.last_offset < 0:
            relative = int(_unpack_from(self.file.entry(self.file.count - 1))[0])
            if relative < 0:
                raise self.file.damaged(f"the last entry has the relative offset {relative}")
            self.last_offset = self.base_offset + relative
        return self.last_offset

    def _slot(self, wanted: int, column: int) -> i64:
        """The last slot whose column is at most `wanted`; -1 if there is none."""
        low: i64 = 0
        high: i64 = self.file.count
        if not high:
            return -1
        view = self.file.view()
        if isinstance(view, bytes):
            limit: i64 = wanted
            at: i64 = column * 4
            while low < high:
                middle = (low + high) // 2
                if i64(read_i32_be(view, middle * ENTRY_SIZE + at)) <= limit:
                    low = middle + 1
                else:
                    high = middle
            return low - 1
        while low < high:
            middle = (low + high) // 2
            if int(_unpack_from(view, middle * ENTRY_SIZE)[column]) <= wanted:
                low = middle + 1
            else:
                high = middle
        return low - 1
