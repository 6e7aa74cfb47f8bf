"""Cuts a stream of bytes into frames: a size of four bytes, big-endian, and that many bytes after it.

    framer.feed(chunk)                 # as it came from the socket, of any length
    framer.announced()                 # 120: the size of the next frame is known, its bytes need not be there
    framer.complete()                  # True: they are
    data, start, end = framer.take()   # the frame is data[start:end]

A frame that lies within one chunk is not copied: `take` names the chunk and the place in it. One that spans chunks is
copied once, into a buffer that grows with what has really come, never with what was announced, and becomes the frame
itself. Announcing 100 MiB costs the sender 4 bytes and us none.

A client believes its broker (`trusting`): there the buffer has its full size at once, and the socket is read straight
into it, without a copy:

    framer.room                        # where the rest of the frame belongs; None: read anywhere and feed it
    framer.received(count)             # so many bytes were read into `room`

Not thread-safe. A fault is final: it is raised again by every later call.
"""

from __future__ import annotations

from collections import deque
from io import BytesIO
from typing import Final

from librt.strings import read_i32_be

from ixion._native import i64
from ixion.wire.faults import PEEK, WireError, bad_size

SIZE_BYTES: Final = 4
CHUNK_COST: Final = 64  # bytes that a chunk costs beside its own: many chunks of one byte are not small


class Framer:
    def __init__(self, limit: i64) -> None:
        self.limit: i64 = limit  # largest frame, in bytes without its size; may change between frames
        self.trusting = False  # whether a size that is announced is believed
        self.shown = False  # whether the stream is known to be Kafka's; only the fault's wording depends on it
        self._chunk = b""  # the chunk being read, from `_at` on; exhausted only when `_later` is empty
        self._at: i64 = 0
        self._later: deque[bytes] = deque()  # the chunks behind it
        self._size: i64 = -1  # of the frame that has begun
        self._body: BytesIO | None = None  # what has come of a frame that spans chunks
        self._room: memoryview | None = None  # of a `_body` that has its full size: where what it lacks belongs
        self._missing: i64 = 0  # bytes that `_body` lacks
        self._fault: WireError | None = None

    def feed(self, data: bytes) -> None:
        if self._missing > 0:
            self._fill(data)
        elif self._at < len(self._chunk):
            self._later.append(data)
        else:
            self._chunk = data
            self._at = 0

    def feed_from(self, buffer: memoryview) -> None:
        """Like `feed`, from a buffer that the caller uses again: the middle of a large frame is copied only once."""
        if self._missing > 0:
            self._fill(buffer)
        else:
            self.feed(bytes(buffer))

    @property
    def room(self) -> memoryview | None:
        """Where to read the rest of the frame into; None if there is no such place."""
        return self._room

    def received(self, count: i64) -> None:
        """So many bytes were read into `room`."""
        room = self._room
        assert room is not None
        self._missing -= count
        self._room = room[count:] if self._missing > 0 else None

    def announced(self) -> i64:
        """The size of the frame that comes next, or -1 while it is not known. WireError if it is absurd."""
        if self._size >= 0:
            return self._size
        if self._fault is not None:
            raise self._fault
        at = self._at
        if len(self._chunk) - at >= SIZE_BYTES:
            self._at = at + SIZE_BYTES
            return self._begin(i64(read_i32_be(self._chunk, at)))
        head = self._chunk[at:]  # three bytes at most
        while self._later:
            chunk = self._later.popleft()
            lacking = SIZE_BYTES - len(head)
            if len(chunk) >= lacking:
                self._chunk = chunk
                self._at = lacking
                return self._begin(i64(read_i32_be(head + chunk[:lacking], 0)))
            head += chunk
        self._chunk = head
        self._at = 0
        return -1

    def complete(self) -> bool:
        """Whether all of the next frame is there."""
        size = self.announced()
        if size < 0:
            return False
        if self._body is None:
            if self._at + size <= len(self._chunk):
                return True
            self._gather(size)
        return self._missing == 0

    def take(self) -> tuple[bytes, i64, i64]:
        """The frame, which must be complete, as a buffer and the place in it."""
        assert self.complete(), "take() needs a complete frame"
        size = self._size
        self._size = -1
        body = self._body
        if body is not None:
            self._body = None
            return body.getvalue(), 0, size  # the buffer itself, not a copy: it has no other user
        data = self._chunk
        start = self._at
        self._at = start + size
        if self._at == len(data):
            self._chunk = self._later.popleft() if self._later else b""
            self._at = 0
        return data, start, start + size

    @property
    def inside_frame(self) -> bool:
        """Whether a frame has begun and is not whole yet."""
        return self._missing > 0 or self._size >= 0 or self._at < len(self._chunk)

    @property
    def held(self) -> i64:
        """Bytes of memory that are kept here."""
        held: i64 = len(self._chunk)
        for chunk in self._later:
            held += len(chunk) + CHUNK_COST
        if self._body is not None:
            held += self._size - self._missing
        return held

    def keeps(self, chunk: bytes) -> bool:
        return self._chunk is chunk

    def break_off(self, fault: WireError) -> None:
        """The reader of the frames found one that ends the stream."""
        self._fault = fault
        self._size = -1

    def drop(self) -> None:
        """Drop all bytes: the rest is not needed."""
        self._chunk = b""
        self._at = 0
        self._later = deque()
        self._size = -1
        self._room = None
        self._body = None
        self._missing = 0

    def _begin(self, size: i64) -> i64:
        if size <= 0 or size > self.limit:
            peek = (
                int(size).to_bytes(SIZE_BYTES, "big", signed=True)
                + self._chunk[self._at : self._at + PEEK - SIZE_BYTES]
            )
            self._fault = bad_size(size, self.limit, peek, self.shown)
            raise self._fault
        self._size = size
        return size

    def _gather(self, size: i64) -> None:
        """The frame goes on beyond this chunk: collect its parts."""
        begun = memoryview(self._chunk)[self._at :]
        self._missing = size
        if self.trusting:
            self._body = BytesIO(bytes(size))
            self._room = self._body.getbuffer()
        else:
            self._body = BytesIO()
        self._fill(begun)
        later = self._later
        self._chunk = b""
        self._at = 0
        self._later = deque()
        for chunk in later:
            self.feed(chunk)

    def _fill(self, data: bytes | memoryview) -> None:
        body = self._body
        assert body is not None, "bytes are missing only from a body"
        missing = self._missing
        room = self._room
        if len(data) <= missing:
            if room is None:
                body.write(data)
                self._missing = missing - len(data)
            else:
                room[: len(data)] = data
                self.received(len(data))
            return
        if room is None:
            body.write(memoryview(data)[:missing])
        else:
            room[:] = memoryview(data)[:missing]
            self._room = None
        self._missing = 0
        self._chunk = bytes(data[missing:])
        self._at = 0
