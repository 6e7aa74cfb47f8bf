"""Whole requests and responses: header and body, without the four bytes of size that framing puts in front.

    request = decode_request(frame)
    parts = encode_response(request.header, ProduceResponse(...))

Bodies come back as `Struct`; the handler of a key knows which one it is. Both directions are here for both roles.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from ixion.protocol import resolve
from ixion.protocol.codec.cursor import ELEMENT_BUDGET
from ixion.protocol.codec.message import MessageCodec
from ixion.protocol.codec.sink import Part, Sink
from ixion.protocol.flaws import DecodeError
from ixion.protocol.headers import RequestHeader, ResponseHeader
from ixion.protocol.notation import Struct, StructMeta
from ixion.protocol.registry import ApiKey, api_key

# A broker's answer about a large cluster holds more elements than any request should.
RESPONSE_BUDGET: Final = 10_000_000


class Request(NamedTuple):
    header: RequestHeader
    body: Struct


class Response(NamedTuple):
    header: ResponseHeader
    body: Struct


def _headers(table: StructMeta) -> tuple[MessageCodec, ...]:
    first, last = table.within
    flexible_from = table.flexible[0]
    return tuple(
        resolve.message(table.__name__, table, version, version >= flexible_from) for version in range(first, last + 1)
    )


REQUEST_HEADERS: Final = _headers(RequestHeader)
RESPONSE_HEADERS: Final = _headers(ResponseHeader)


def decode_request_header(data: bytes, start: int = 0, end: int = -1) -> tuple[RequestHeader, int]:
    """The header in `data[start:end]`, and where the body starts.

    The version need not be one we speak, only the key: the answer to a version that is too new needs the header.
    """
    stop = len(data) if end < 0 else end
    if stop - start < 4:
        raise DecodeError("a request has at least a key and a version", start)
    key = int.from_bytes(data[start : start + 2], signed=True)
    version = int.from_bytes(data[start + 2 : start + 4], signed=True)
    codec = REQUEST_HEADERS[api_key(key, version).request_header_version(version)]
    header, body = codec.decode_prefix(data, start, end)
    return cast(RequestHeader, header), body


def decode_request_body(header: RequestHeader, data: bytes, start: int, end: int = -1) -> Struct:
    codec = api_key(header.api_key, header.api_version).request(header.api_version)
    return cast(Struct, codec.decode(data, start, end))


def decode_request(data: bytes, start: int = 0, end: int = -1) -> Request:
    header, body = decode_request_header(data, start, end)
    return Request(header, decode_request_body(header, data, body, end))


def encode_request(header: RequestHeader, body: Struct) -> list[Part]:
    api = api_key(header.api_key, header.api_version)
    codec = api.request(header.api_version)
    sink = Sink()
    REQUEST_HEADERS[api.request_header_version(header.api_version)].write(sink, header)
    codec.write(sink, body)
    return sink.finish()


def encode_response(header: RequestHeader, body: Struct) -> list[Part]:
    """The answer to the request with this header. Large record data stays in buffers of its own, uncopied."""
    api = api_key(header.api_key, header.api_version)
    return encode_response_as(api, header.api_version, header.correlation_id, body)


def encode_response_as(api: ApiKey, version: int, correlation_id: int, body: Struct) -> list[Part]:
    """As `encode_response`, in a version of one's own choice: ApiVersions answers one that is too new in version 0."""
    codec = api.response(version)
    sink = Sink()
    RESPONSE_HEADERS[api.response_header_version(version)].write(sink, ResponseHeader(correlation_id=correlation_id))
    codec.write(sink, body)
    return sink.finish()


def decode_response(
    api: ApiKey, version: int, data: bytes, start: int = 0, end: int = -1, budget: int = RESPONSE_BUDGET
) -> Response:
    header, body = RESPONSE_HEADERS[api.response_header_version(version)].decode_prefix(
        data, start, end, ELEMENT_BUDGET
    )
    return Response(cast(ResponseHeader, header), cast(Struct, api.response(version).decode(data, body, end, budget)))
