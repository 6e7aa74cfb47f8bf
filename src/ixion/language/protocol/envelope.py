"""Whole requests and responses: header and body.

    header, body = decode_request(frame)
    parts = frame_response(header, ProduceResponse(...))

A frame is read without the four bytes of size in front of it, which framing has removed. Functions named `frame` write
these four bytes, functions named `encode` do not.
Bodies are returned as `Struct`; the handler of a key knows which one it gets. Brokers and clients both use this module.
The first request of a key and version builds its codecs; after that a header costs 0.4 µs beside its body.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Generator
from typing import Final, cast

from librt.strings import read_i16_be, write_i32_be

from ixion._native import i32, i64
from ixion.language.protocol import resolve
from ixion.language.protocol.codec.cursor import AT_ONCE_BUDGET, ELEMENT_BUDGET
from ixion.language.protocol.codec.message import MessageCodec
from ixion.language.protocol.codec.sink import Buffer, Part, Sink
from ixion.language.protocol.flaws import DecodeError, TooLongError
from ixion.language.protocol.headers import RequestHeader, ResponseHeader
from ixion.language.protocol.notation import Struct, StructMeta
from ixion.language.protocol.registry import ApiKey, api_key

# Metadata of a large cluster has more elements than any request should have.
RESPONSE_BUDGET: Final = 10_000_000


def header_codecs(table: StructMeta) -> list[MessageCodec]:
    """The codecs of a header; the index is the version."""
    flexible_from = table.flexible[0]
    versions = range(table.within[1] + 1)
    return [resolve.message(table.__name__, table, version, version >= flexible_from) for version in versions]


REQUEST_HEADERS: Final = header_codecs(RequestHeader)
RESPONSE_HEADERS: Final = header_codecs(ResponseHeader)


class Exchange:
    """The codecs of one API in one version: requests and responses."""

    def __init__(self, api: ApiKey, version: int) -> None:
        self.request: Final = api.request(version)
        self.response: Final = api.response(version)
        self.request_header: Final = REQUEST_HEADERS[api.request_header_version(version)]
        self.response_header: Final = RESPONSE_HEADERS[api.response_header_version(version)]
        self.tagged_answer: Final = api.response_header_version(version) > 0


_exchanges: dict[int, Exchange] = {}


def exchange(key: i64, version: i64) -> Exchange:
    """The codecs of a key in a version; UnsupportedVersionError if we do not support it."""
    place = key << 16 | version
    known = _exchanges.get(place)
    if known is None:
        known = _exchanges[place] = Exchange(api_key(key, version), version)
    return known


def decode_request(
    data: bytes, start: i64 = 0, end: i64 = -1, budget: i64 = ELEMENT_BUDGET
) -> tuple[RequestHeader, Struct]:
    """The request in `data[start:end]`. A listener that only brokers reach may grant a larger budget.

    Bytes after it are ignored, as in Kafka: librdkafka (seen in 2.16) writes null for "all topics" of a Metadata
    request from version 9 on as four bytes instead of one, so that the request ends three bytes before the frame.
    """
    codecs = exchange(api_number(data, start, end), version_number(data, start))
    header, body = codecs.request_header.decode_prefix(data, start, end)
    return cast(RequestHeader, header), cast(Struct, codecs.request.decode_prefix(data, body, end, budget)[0])


def decode_at_once(data: bytes, start: i64 = 0, end: i64 = -1) -> tuple[RequestHeader, Struct]:
    """As `decode_request`, but TooLongError if the request has so many elements that it needs `decode_steps`."""
    codecs = exchange(api_number(data, start, end), version_number(data, start))
    header, body = codecs.request_header.decode_prefix(data, start, end)
    return cast(RequestHeader, header), cast(Struct, codecs.request.decode_at_once(data, body, end))


def decode_steps(
    data: bytes, start: i64, end: i64, budget: i64 = ELEMENT_BUDGET
) -> Generator[None, None, tuple[RequestHeader, Struct, int]]:
    """As `decode_request`, in steps; the last value is the number of elements in the request."""
    codecs = exchange(api_number(data, start, end), version_number(data, start))
    header, place = codecs.request_header.decode_prefix(data, start, end)
    body, elements = yield from codecs.request.decode_steps(data, place, end, budget)
    return cast(RequestHeader, header), cast(Struct, body), elements


def decode_request_header(data: bytes, start: i64 = 0, end: i64 = -1) -> tuple[RequestHeader, i64]:
    """The header alone, and where the body starts.

    The key must be one we support, the version need not: we need the header to answer a version that is too new.
    """
    key = api_number(data, start, end)
    version = version_number(data, start)
    codec = REQUEST_HEADERS[api_key(key, version).request_header_version(version)]
    header, body = codec.decode_prefix(data, start, end)
    return cast(RequestHeader, header), body


def api_number(data: bytes, start: i64, end: i64) -> i64:
    stop: i64 = len(data) if end < 0 else end
    if start < 0 or stop > len(data) or stop - start < 4:
        raise DecodeError("a request has at least a key and a version", start)
    return i64(read_i16_be(data, start))


def version_number(data: bytes, start: i64) -> i64:
    return i64(read_i16_be(data, start + 2))


def encode_request(header: RequestHeader, body: Struct) -> list[Buffer]:
    """Buffers to send one after the other. Large record data is passed on without a copy."""
    sink = Sink()
    write_request(sink, header, body)
    return cast(list[Buffer], sink.finish())  # only a response may contain `Deferred` data


def frame_request(header: RequestHeader, body: Struct) -> list[Buffer]:
    """As `encode_request`, with the size in front: ready to send."""
    sink = Sink(True)
    write_request(sink, header, body)
    return cast(list[Buffer], sink.finish_frame())


def write_request(sink: Sink, header: RequestHeader, body: Struct) -> None:
    codecs = exchange(header.api_key, header.api_version)
    codecs.request_header.write(sink, header)
    codecs.request.write(sink, body)


def encode_response(header: RequestHeader, body: Struct) -> list[Part]:
    """The response to the request with this header, as buffers like those of `encode_request`."""
    return encode_response_as(header.api_key, header.api_version, header.correlation_id, body)


def encode_response_as(key: i64, version: i64, correlation_id: i32, body: Struct) -> list[Part]:
    """As `encode_response`, in a given version: ApiVersions answers a request that is too new in version 0."""
    sink = Sink()
    write_response(sink, key, version, correlation_id, body)
    return sink.finish()


def frame_response(header: RequestHeader, body: Struct) -> list[Part]:
    """As `encode_response`, with the size in front: ready to send."""
    return frame_response_as(header.api_key, header.api_version, header.correlation_id, body)


def frame_at_once(header: RequestHeader, body: Struct) -> list[Part] | None:
    """As `frame_response`, but None if the response has so many elements that it needs `frame_steps`."""
    sink = Sink(True, AT_ONCE_BUDGET)
    try:
        write_response(sink, header.api_key, header.api_version, header.correlation_id, body)
    except TooLongError:
        return None
    return sink.finish_frame()


def frame_steps(header: RequestHeader, body: Struct) -> Generator[None, None, list[Part]]:
    """As `frame_response`, in steps."""
    codecs = exchange(header.api_key, header.api_version)
    sink = Sink(True)
    write_i32_be(sink.out, header.correlation_id)
    if codecs.tagged_answer:
        sink.out.append(0)  # no tagged fields
    yield from codecs.response.write_steps(sink, body)
    return sink.finish_frame()


def frame_response_as(key: i64, version: i64, correlation_id: i32, body: Struct) -> list[Part]:
    sink = Sink(True)
    write_response(sink, key, version, correlation_id, body)
    return sink.finish_frame()


def write_response(sink: Sink, key: i64, version: i64, correlation_id: i32, body: Struct) -> None:
    codecs = exchange(key, version)
    write_i32_be(sink.out, correlation_id)
    if codecs.tagged_answer:
        sink.out.append(0)  # no tagged fields
    codecs.response.write(sink, body)


def decode_response(
    key: i64, version: i64, data: bytes, start: i64 = 0, end: i64 = -1, budget: i64 = RESPONSE_BUDGET
) -> tuple[ResponseHeader, Struct]:
    """The response to a request of that key and version; a response does not contain them."""
    codecs = exchange(key, version)
    header, body = codecs.response_header.decode_prefix(data, start, end, ELEMENT_BUDGET)
    return cast(ResponseHeader, header), cast(Struct, codecs.response.decode(data, body, end, budget))
