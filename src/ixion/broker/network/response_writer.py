"""Writes the responses of one connection, one at a time, and detects when a response is sent.

A response is sent when the transport has no bytes of it left. With a write buffer limit of zero the transport shows
this: it writes at once, calls `pause_writing` within `write` if bytes are left over, and `resume_writing` when they are
sent.

Record data that is still in a file (`Deferred`) is read in pieces, each after the previous one is sent. After a few
pieces that the client accepted at once, other connections get their turn on the loop:

    a fetch of 5 MB to a quick client    pieces 1, 2, turn over, 3, 4, turn over, 5, sent
    to a slow one                        piece 1, paused … resumed, piece 2, paused … resumed, piece 3 …

Loop thread only.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import asyncio
from typing import Final, cast

from ixion._native import i64
from ixion.language.protocol.codec.sink import Buffer, Deferred, Part

# Bytes read from files and written at once: the default size of a partition in a fetch (max.partition.fetch.bytes).
# With a quarter of it, a fetch of 1 MB took 1.4 times the processor time.
PIECE: Final = 1 << 20
TURN: Final = 2 * PIECE  # bytes that one connection writes before others get their turn

# Results of `write` and `write_on`.
SENT: Final = 0  # the response is sent
PAUSED: Final = 1  # the client must read first: continue when the transport resumes writing
TURN_OVER: Final = 2  # continue in the next turn of the loop


class ResponseWriter:
    def __init__(self) -> None:
        self.paused = False  # the transport has bytes that the client has not read
        self.writing = False  # a call of the transport's `write` is running
        self.size: i64 = 0  # bytes of the response
        self.written: i64 = 0  # bytes of the last write
        self._parts: list[Part] | None = None  # parts of a response that is not written completely
        self._next: i64 = 0  # index of the next part
        self._start: i64 = 0  # bytes of that part that are written

    @property
    def has_more(self) -> bool:
        """Whether a part of the response was not given to the transport yet."""
        return self._parts is not None

    def write(self, transport: asyncio.Transport, parts: list[Part]) -> i64:
        size: i64 = 0
        deferred = False
        for part in parts:
            size += len(part)
            deferred = deferred or isinstance(part, Deferred)
        self.size = size
        if deferred:
            self._parts = parts
            self._next = 0
            self._start = 0
            return self.write_on(transport)
        self.written = size
        self.writing = True
        if len(parts) == 1:
            transport.write(cast(Buffer, parts[0]))
        else:
            transport.writelines(cast(list[Buffer], parts))
        self.writing = False
        return PAUSED if self.paused else SENT

    def write_on(self, transport: asyncio.Transport) -> i64:
        """Write the next pieces. KafkaError if the file cannot be read."""
        parts = self._parts
        if parts is None:
            return SENT
        turn: i64 = 0
        while self._next < len(parts):
            if turn >= TURN:
                return TURN_OVER
            piece = self._next_piece(parts)
            turn += self.written
            self.writing = True
            transport.writelines(piece)
            self.writing = False
            if self.paused:
                if self._next == len(parts):
                    self._parts = None
                return PAUSED
        self._parts = None
        return SENT

    def drop(self) -> None:
        """Drop the rest of the response: the connection is closed."""
        self._parts = None

    def _next_piece(self, parts: list[Part]) -> list[Buffer]:
        piece: list[Buffer] = []
        size: i64 = 0
        read: i64 = 0  # bytes of the piece that come from files
        while self._next < len(parts):
            part = parts[self._next]
            if isinstance(part, Deferred):
                count = min(PIECE, part.size - self._start)
                if read and read + count > PIECE:
                    break
                piece.append(part.read(self._start, count))
                read += count
                size += count
                self._start += count
                if self._start < part.size:
                    break
            else:
                piece.append(part)
                size += len(part)
            self._next += 1
            self._start = 0
        self.written = size
        return piece
