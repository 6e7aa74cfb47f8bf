"""A broker as its client sees it: requests out, answers matched to them.

A broker answers in the order it was asked, so the answer that comes must carry the correlation id of the oldest
request that still waits for one. Anything else means that the two sides are out of step: the connection is over.
Time is an argument, in milliseconds of any clock that does not go back.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from librt.strings import read_i16_be, read_i32_be

from ixion._native import i32, i64
from ixion.model.errors import ErrorCode
from ixion.protocol.codec.sink import Buffer
from ixion.protocol.envelope import decode_response, frame_request
from ixion.protocol.headers import RequestHeader
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.wire.faults import Looks, WireError
from ixion.wire.framing import Framer

LAST_ID: Final = 2**31 - 1
ANSWER_LIMIT: Final = 2**31 - 1  # a client trusts the broker it chose
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
UNSUPPORTED_VERSION: Final = int(ErrorCode.UNSUPPORTED_VERSION)


class Pending:
    """A request that waits for its answer."""

    def __init__(self, key: i64, version: i64, correlation_id: i64, sent_ms: i64) -> None:
        self.key: i64 = key
        self.version: i64 = version
        self.correlation_id: i64 = correlation_id
        self.sent_ms: i64 = sent_ms


class ResponseFrame:
    """The response to one request, `data[start:end]`, its header included."""

    def __init__(self, pending: Pending, data: bytes, start: i64, end: i64) -> None:
        self.key: i64 = pending.key
        self.version: i64 = pending.version
        self.correlation_id: i64 = pending.correlation_id
        self.sent_ms: i64 = pending.sent_ms
        self.data = data
        self.start: i64 = start
        self.end: i64 = end

    def decode(self) -> Struct:
        """The body. A broker that is older than the ApiVersions it was asked for answers in version 0."""
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

    def request(
        self, key: i64, version: i64, body: Struct, now_ms: i64, *, answered: bool = True
    ) -> tuple[int, list[Buffer]]:
        """The correlation id and the buffers to send. `answered=False` for a Produce with acks=0: none will come."""
        correlation_id = self._next_id
        header = RequestHeader(
            api_key=key, api_version=version, correlation_id=i32(correlation_id), client_id=self.client_id
        )
        parts = frame_request(header, body)
        self._next_id = 0 if correlation_id == LAST_ID else correlation_id + 1
        if answered:
            self._pending.append(Pending(key, version, correlation_id, now_ms))
        return correlation_id, parts

    def receive(self, data: bytes) -> None:
        self._framer.feed(data)

    def receive_from(self, buffer: memoryview) -> None:
        """Like `receive`, from a buffer that the caller uses again."""
        self._framer.feed_from(buffer)

    @property
    def room(self) -> memoryview | None:
        """Where the rest of a large answer belongs, for a caller that can read it there; then `received`."""
        return self._framer.room

    def received(self, count: i64) -> None:
        self._framer.received(count)

    def next_answer(self) -> ResponseFrame | None:
        """The next answer, or None while not all of it has come. WireError if it is not the one that is due."""
        framer = self._framer
        if not framer.complete():
            return None
        data, start, end = framer.take()
        if end - start < 4:
            raise self._broken(WireError(Looks.GARBAGE, f"an answer of {end - start} bytes"))
        correlation_id = read_i32_be(data, start)
        if not self._pending:
            raise self._broken(WireError(Looks.ORDER, f"an answer to {correlation_id}, but nothing was asked"))
        due = self._pending[0]
        if due.correlation_id != correlation_id:
            text = f"an answer to {correlation_id}, but the one to {due.correlation_id} is due"
            raise self._broken(WireError(Looks.ORDER, text))
        self._pending.popleft()
        return ResponseFrame(due, data, start, end)

    def oldest_sent_ms(self) -> int | None:
        """When the request was sent that waits longest: what a request timeout is measured from."""
        return self._pending[0].sent_ms if self._pending else None

    def _broken(self, fault: WireError) -> WireError:
        self._framer.break_off(fault)
        return fault
