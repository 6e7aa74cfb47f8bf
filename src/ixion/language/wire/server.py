"""The broker's side of a connection: bytes in, requests out, one at a time.

    wire.receive(chunk)
    request = wire.next_request()      # None: it is incomplete; `announced` is its size
    ...
    wire.answered()                    # now the next request may come out

| state | next_request                | answered | a fault   |
|-------|-----------------------------|----------|-----------|
| open  | a whole frame: busy         | refused  | broken    |
| busy  | None, the bytes wait        | open     |           |
| broken| raises the fault            | refused  |           |

A request comes out only after the response to the one before, so responses leave in the order of the requests, even if
a client sends ahead. The first request of a connection must have a known API key and a valid header. A listener with
authentication starts with a small limit, and calls `set_limit` once a client has authenticated.

After SaslHandshake 0 a client sends bare SASL messages, without headers (`expect_messages`). Each comes out as a
SaslAuthenticate 0 request.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from librt.strings import read_i16_be, read_i32_be

from ixion._native import i64
from ixion.language.protocol.codec.cursor import ELEMENT_BUDGET
from ixion.language.protocol.envelope import decode_at_once, decode_request, decode_request_header, decode_steps
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.notation import Struct
from ixion.language.wire.faults import PEEK, Looks, WireError
from ixion.language.wire.framing import Framer

SHORTEST: Final = 8  # key, version, correlation id
# The header of SaslAuthenticate 0: key, version, correlation id, no client id.
SASL_AUTHENTICATE: Final = b"\0\x24\0\0\0\0\0\0\xff\xff"
DEFAULT_LIMIT: Final = 100 * 1024 * 1024


OPEN: Final = 0
BUSY: Final = 1
BROKEN: Final = 2
STATES: Final = ("open", "busy", "broken")


class RequestFrame:
    """A complete request, `data[start:end]`, of at least 8 bytes. The rest of its header is decoded on first use."""

    def __init__(self, data: bytes, start: i64, end: i64) -> None:
        self.data = data
        self.start: i64 = start
        self.end: i64 = end
        self.size: i64 = end - start
        self.api_key: i64 = i64(read_i16_be(data, start))
        self.api_version: i64 = i64(read_i16_be(data, start + 2))
        self.correlation_id: i64 = i64(read_i32_be(data, start + 4))
        self._header: RequestHeader | None = None

    @property
    def header(self) -> RequestHeader:
        """Decoded on first use. DecodeError or UnsupportedVersionError if it is not valid."""
        if self._header is None:
            self._header, _ = decode_request_header(self.data, self.start, self.end)
        return self._header

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    def decode(self, budget: i64 = ELEMENT_BUDGET) -> tuple[RequestHeader, Struct]:
        return decode_request(self.data, self.start, self.end, budget)

    def decode_at_once(self) -> tuple[RequestHeader, Struct]:
        """TooLongError if the request needs `decode_steps`."""
        return decode_at_once(self.data, self.start, self.end)

    def decode_steps(self) -> Generator[None, None, tuple[RequestHeader, Struct, int]]:
        return decode_steps(self.data, self.start, self.end)

    def drop(self) -> None:
        """Drop the bytes; the numbers and a decoded header stay."""
        self.data = b""
        self.start = self.end = 0


class ServerConnection:
    def __init__(self, limit: i64 = DEFAULT_LIMIT) -> None:
        self._framer = Framer(limit)
        self._state: i64 = OPEN
        self._bare = False  # frames are SASL messages

    @property
    def state(self) -> str:
        return STATES[self._state]

    @property
    def shown(self) -> bool:
        """Whether the client has sent a valid request."""
        return self._framer.shown

    @property
    def inside_frame(self) -> bool:
        """Whether part of a request has arrived."""
        return self._framer.inside_frame

    @property
    def held(self) -> i64:
        """Bytes of requests that have not come out yet."""
        return self._framer.held

    def keeps(self, request: RequestFrame) -> bool:
        """Whether the chunk of this request is still in use here, because it has bytes of later requests."""
        return self._framer.keeps(request.data)

    def set_limit(self, limit: i64) -> None:
        """Set the largest request from the next one on."""
        self._framer.limit = limit

    def expect_messages(self, bare: bool) -> None:
        """Whether the next frames are bare SASL messages."""
        self._bare = bare

    def receive(self, data: bytes) -> None:
        self._framer.feed(data)

    def receive_from(self, buffer: memoryview) -> None:
        """As `receive`, from a buffer that the caller reuses."""
        self._framer.feed_from(buffer)

    def drop(self) -> None:
        """The connection is closed: drop the bytes of a partial request."""
        self._framer.drop()

    def announced(self) -> i64:
        """The size of the next request; -1 if it is not known yet, or the one before is still in flight."""
        if self._state == BUSY:
            return -1
        try:
            return self._framer.announced()
        except WireError:
            self._state = BROKEN
            raise

    def next_request(self) -> RequestFrame | None:
        """The next request, or None. WireError when the bytes are not a request."""
        if self.announced() < 0:
            return None
        framer = self._framer
        if not framer.complete():
            return None
        data, start, end = framer.take()
        if self._bare:
            message = data[start:end]
            data = SASL_AUTHENTICATE + len(message).to_bytes(4, "big") + message
            start, end = 0, len(data)
        if end - start < SHORTEST:
            raise self._broken(data[start:end], "it ends inside the header")
        request = RequestFrame(data, start, end)
        if not framer.shown:
            self._meet(request)
        self._state = BUSY
        return request

    def answered(self) -> None:
        """The request in flight has its response, or needs none."""
        if self._state != BUSY:
            raise RuntimeError(f"no request is in flight; the connection is {self.state}")
        self._state = OPEN

    def _meet(self, request: RequestFrame) -> None:
        try:
            decode_request_header(request.data, request.start, request.end)
        except (DecodeError, UnsupportedVersionError) as flaw:
            raise self._broken(request.data[request.start : request.end], str(flaw)) from flaw
        self._framer.shown = True

    def _broken(self, frame: bytes, why: str) -> WireError:
        self._state = BROKEN
        fault = WireError(Looks.GARBAGE, f"a frame of {len(frame)} bytes is not a request, {frame[:PEEK]!r}: {why}")
        self._framer.break_off(fault)
        return fault
