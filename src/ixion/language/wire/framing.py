"""Splits a stream of bytes into frames: a size of four bytes, big-endian, and that many bytes after it.

    framer.feed(chunk)                 # bytes from the socket, of any length
    framer.announced()                 # 120: the size of the next frame; its bytes may still be missing
    framer.complete()                  # True: all its bytes are here
    data, start, end = framer.take()   # the frame is data[start:end]

A frame inside one chunk is not copied: `take` returns the chunk and the position in it. A frame that spans chunks is
copied once, into a buffer that becomes the frame. That buffer grows with the bytes that arrive, not with the size that
the peer claims: a claim of 100 MiB allocates nothing.

A client trusts its broker (`trusting`): there the buffer gets its full size at once, and the socket is read directly
into it, without a copy:

    framer.room                        # where to read the rest of the frame; None: read elsewhere and feed it
    framer.received(count)             # `count` bytes were read into `room`

Not thread-safe. After an error every later call raises it again.
"""

from __future__ import annotations

from collections import deque
from io import BytesIO
from typing import Final

from librt.strings import read_i32_be

from ixion._native import i64
from ixion.language.wire.faults import PEEK, WireError, bad_size

SIZE_BYTES: Final = 4
CHUNK_COST: Final = 64  # bytes of overhead per chunk: many chunks of one byte take memory


class Framer:
    def __init__(self, limit: i64) -> None:
        self.limit: i64 = limit  # largest frame, in bytes without its size; may change between frames
        self.trusting = False  # whether to allocate the size that a frame claims
        self.shown = False  # whether the stream is known to be Kafka's; only the wording of an error depends on it
        self._chunk = b""  # the chunk being read, from `_at` on; used up only when `_later` is empty
        self._at: i64 = 0
        self._later: deque[bytes] = deque()  # the chunks after it
        self._size: i64 = -1  # size of the current frame
        self._body: BytesIO | None = None  # the bytes so far of a frame that spans chunks
        self._room: memoryview | None = None  # the unfilled part of a `_body` that has its full size
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
        """As `feed`, from a buffer that the caller reuses: the middle of a large frame is copied only once."""
        if self._missing > 0:
            self._fill(buffer)
        else:
            self.feed(bytes(buffer))

    @property
    def room(self) -> memoryview | None:
        """Where to read the rest of the frame; None: read elsewhere and call `feed`."""
        return self._room

    def received(self, count: i64) -> None:
        """`count` bytes were read into `room`."""
        room = self._room
        assert room is not None
        self._missing -= count
        self._room = room[count:] if self._missing > 0 else None

    def announced(self) -> i64:
        """The size of the next frame, or -1 if it is not known yet. WireError if it is negative, 0 or too large."""
        if self._size >= 0:
            return self._size
        if self._fault is not None:
            raise self._fault
        at = self._at
        if len(self._chunk) - at >= SIZE_BYTES:
            self._at = at + SIZE_BYTES
            return self._begin(i64(read_i32_be(self._chunk, at)))
        head = self._chunk[at:]  # at most three bytes
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
        """Whether the next frame is complete."""
        size = self.announced()
        if size < 0:
            return False
        if self._body is None:
            if self._at + size <= len(self._chunk):
                return True
            self._gather(size)
        return self._missing == 0

    def take(self) -> tuple[bytes, i64, i64]:
        """The next frame, which must be complete: a buffer, and start and end in it."""
        assert self.complete(), "take() needs a complete frame"
        size = self._size
        self._size = -1
        body = self._body
        if body is not None:
            self._body = None
            return body.getvalue(), 0, size  # no copy: BytesIO returns its own buffer
        data = self._chunk
        start = self._at
        self._at = start + size
        if self._at == len(data):
            self._chunk = self._later.popleft() if self._later else b""
            self._at = 0
        return data, start, start + size

    @property
    def inside_frame(self) -> bool:
        """Whether a frame has begun and is incomplete."""
        return self._missing > 0 or self._size >= 0 or self._at < len(self._chunk)

    @property
    def held(self) -> i64:
        """Bytes of memory in use here."""
        held: i64 = len(self._chunk)
        for chunk in self._later:
            held += len(chunk) + CHUNK_COST
        if self._body is not None:
            held += self._size - self._missing
        return held

    def keeps(self, chunk: bytes) -> bool:
        return self._chunk is chunk

    def break_off(self, fault: WireError) -> None:
        """Makes every later call raise `fault`: the reader found a bad frame."""
        self._fault = fault
        self._size = -1

    def drop(self) -> None:
        """Drop all bytes."""
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
        """Collect the parts of a frame that spans chunks."""
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
