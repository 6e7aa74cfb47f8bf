"""Steps from batch to batch through a segment file, reading only the headers.

A step reads the 61 bytes of a header and does not check the CRC. Reads are made in chunks of 4 KiB, the usual distance
between two index entries. So a search from an index entry costs one read if batches are small, and one read per skipped
batch if they are large.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be

from ixion._native import i64
from ixion.broker.log.handle import Handle
from ixion.language.records.batch import BatchView
from ixion.language.records.layout import (
    BATCH_LENGTH,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LOG_OVERHEAD,
    MAGIC,
    MAX_TIMESTAMP,
    MIN_BATCH_LENGTH,
)

CHUNK: Final = 4096 + HEADER_SIZE
# No batch is larger: a length that claims more is damage.
_MAX_LENGTH: Final = (1 << 31) - 1 - LOG_OVERHEAD


class Scan:
    """A position among the batches of a file, which it keeps open; `step` moves it by one batch."""

    __slots__ = (
        "_end",
        "_handle",
        "_size",
        "base_offset",
        "chunk",
        "chunk_start",
        "last_offset",
        "max_timestamp",
        "position",
        "size",
    )

    def __init__(self, handle: Handle, position: int, end: int, ahead: int = 0) -> None:
        """`ahead`: read this many bytes beyond a header, for a caller that needs them."""
        self._handle: Final = handle
        self._end: i64 = end
        self._size: i64 = CHUNK + ahead
        self.chunk = b""
        self.chunk_start: i64 = 0
        self.position: i64 = position  # of the current batch
        self.size: i64 = 0
        self.base_offset: i64 = -1
        self.last_offset: i64 = -1
        self.max_timestamp: i64 = -1

    def step(self) -> bool:
        """Moves to the next batch. False at the end, or if no complete, plausible batch of magic 2 follows."""
        at: i64 = self.position + self.size
        if at + MIN_BATCH_LENGTH + LOG_OVERHEAD > self._end:
            return False
        inside: i64 = at - self.chunk_start
        if inside < 0 or inside + HEADER_SIZE > len(self.chunk):
            self.chunk = self._handle.read(int(min(self._size, self._end - at)), at)
            self.chunk_start = at
            inside = 0
            if len(self.chunk) < HEADER_SIZE:
                return False
        chunk = self.chunk
        length = i64(read_i32_be(chunk, inside + BATCH_LENGTH))
        delta = i64(read_i32_be(chunk, inside + LAST_OFFSET_DELTA))
        base: i64 = read_i64_be(chunk, inside)
        size: i64 = length + LOG_OVERHEAD
        if chunk[inside + MAGIC] != 2 or length < MIN_BATCH_LENGTH or length > _MAX_LENGTH:
            return False
        if delta < 0 or base < 0 or at + size > self._end:
            return False
        self.position = at
        self.size = size
        self.base_offset = base
        self.last_offset = base + delta
        self.max_timestamp = read_i64_be(chunk, inside + MAX_TIMESTAMP)
        return True

    def peek(self) -> bool:
        """Whether a batch begins at the position; does not move. Only before the first step."""
        found = self.step()
        self.size = 0
        return found

    def head(self) -> BatchView:
        """The header of the current batch, without its records."""
        return BatchView(self.chunk, int(self.position - self.chunk_start))

    def whole(self) -> BatchView:
        """The current batch with its records."""
        return BatchView(self._handle.read(int(self.size), int(self.position)), 0)
