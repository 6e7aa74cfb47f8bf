"""The client's side of a connection: requests out, responses matched to them.

A broker responds in the order of the requests, so a response must have the correlation id of the oldest pending
request. Any other id means that the two sides are out of step: the connection must be closed. Time is an argument, in
milliseconds of any monotonic clock.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from librt.strings import read_i16_be, read_i32_be

from ixion._native import i32, i64
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.sink import Buffer
from ixion.language.protocol.envelope import decode_response, frame_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire.faults import Looks, WireError
from ixion.language.wire.framing import Framer

LAST_ID: Final = 2**31 - 1
ANSWER_LIMIT: Final = 2**31 - 1  # a client trusts the broker it chose
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
UNSUPPORTED_VERSION: Final = int(ErrorCode.UNSUPPORTED_VERSION)


class Pending:
    """A request that waits for its response."""

    def __init__(self, key: i64, version: i64, correlation_id: i64) -> None:
        self.key: i64 = key
        self.version: i64 = version
        self.correlation_id: i64 = correlation_id


class ResponseFrame:
    """The response to one request, `data[start:end]`, its header included."""

    def __init__(self, pending: Pending, data: bytes, start: i64, end: i64) -> None:
        self.key: i64 = pending.key
        self.version: i64 = pending.version
        self.correlation_id: i64 = pending.correlation_id
        self.data = data
        self.start: i64 = start
        self.end: i64 = end

    def decode(self) -> Struct:
        """The body. A broker that does not support the version of an ApiVersions request responds in version 0."""
        version = self.version
        has_code = self.key == API_VERSIONS and self.end - self.start >= 6
        if has_code and read_i16_be(self.data, self.start + 4) == UNSUPPORTED_VERSION:
            version = 0
        _, body = decode_response(self.key, version, self.data, self.start, self.end)
        return body


class ClientConnection:
    def __init__(self, client_id: str | None = None, *, limit: int = ANSWER_LIMIT) -> None:
        self.client_id = client_id
        self._framer = Framer(limit)
        self._framer.shown = True
        self._framer.trusting = True
        self._next_id: i64 = 0
        self._pending: deque[Pending] = deque()

    @property
    def in_flight(self) -> int:
        return len(self._pending)

    def request(self, key: i64, version: i64, body: Struct, *, answered: bool = True) -> tuple[int, list[Buffer]]:
        """The correlation id and the buffers to send. `answered=False` for a Produce with acks=0: no response."""
        correlation_id = self._next_id
        header = RequestHeader(
            api_key=key, api_version=version, correlation_id=i32(correlation_id), client_id=self.client_id
        )
        parts = frame_request(header, body)
        self._next_id = 0 if correlation_id == LAST_ID else correlation_id + 1
        if answered:
            self._pending.append(Pending(key, version, correlation_id))
        return correlation_id, parts

    def receive(self, data: bytes) -> None:
        self._framer.feed(data)

    def receive_from(self, buffer: memoryview) -> None:
        """As `receive`, from a buffer that the caller reuses."""
        self._framer.feed_from(buffer)

    @property
    def room(self) -> memoryview | None:
        """Where to read the rest of a large response; call `received` then."""
        return self._framer.room

    def received(self, count: i64) -> None:
        self._framer.received(count)

    def next_answer(self) -> ResponseFrame | None:
        """The next response, or None if it is incomplete. WireError if it has the wrong correlation id."""
        framer = self._framer
        if not framer.complete():
            return None
        data, start, end = framer.take()
        if end - start < 4:
            raise self._broken(WireError(Looks.GARBAGE, f"a response of {end - start} bytes"))
        correlation_id = read_i32_be(data, start)
        if not self._pending:
            raise self._broken(WireError(Looks.ORDER, f"a response to {correlation_id}, but no request is pending"))
        due = self._pending[0]
        if due.correlation_id != correlation_id:
            text = f"a response to {correlation_id}, but the next one must be to {due.correlation_id}"
            raise self._broken(WireError(Looks.ORDER, text))
        self._pending.popleft()
        return ResponseFrame(due, data, start, end)

    def _broken(self, fault: WireError) -> WireError:
        self._framer.break_off(fault)
        return fault
