"""A client as the broker sees it: one request at a time, in order, from strangers only small ones."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.language.protocol.envelope import frame_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.messages.k03_metadata import MetadataRequest
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.language.protocol.notation import Struct
from ixion.language.wire import Looks, ServerConnection, WireError
from ixion.language.wire.framing import CHUNK_COST
from tests.wire.test_framing import cut, places


def framed(correlation_id: int, body: Struct | None = None, key: int = 18, version: int = 3) -> bytes:
    header = RequestHeader(
        api_key=key, api_version=version, correlation_id=correlation_id, client_id=f"c{correlation_id}"
    )
    return b"".join(frame_request(header, body or ApiVersionsRequest()))


@given(st.integers(0, 12), places, st.data())
def test_any_split_gives_the_same_requests_one_at_a_time(count: int, at: list[int], data: st.DataObject) -> None:
    stream = b"".join(framed(number) for number in range(count))
    wire = ServerConnection()
    seen = []
    for chunk in [*cut(stream, at), b""]:
        if chunk:
            wire.receive(chunk)
        while (request := wire.next_request()) is not None:
            seen.append((request.correlation_id, request.header.client_id, request.api_key, request.api_version))
            assert wire.next_request() is None  # muted
            assert wire.announced() == -1
            if chunk and data.draw(st.booleans()):
                break
            wire.answered()
        if wire.state == "busy":
            wire.answered()
    while (request := wire.next_request()) is not None:
        seen.append((request.correlation_id, request.header.client_id, request.api_key, request.api_version))
        wire.answered()
    assert seen == [(number, f"c{number}", 18, 3) for number in range(count)]
    assert not wire.inside_frame


def test_a_request_reads_its_header_and_body() -> None:
    wire = ServerConnection()
    wire.receive(framed(7, MetadataRequest(topics=()), 3, 9))
    request = wire.next_request()
    assert request is not None
    assert (request.api_key, request.api_version, request.correlation_id, request.client_id) == (3, 9, 7, "c7")
    header, body = request.decode()
    assert header.correlation_id == 7
    assert isinstance(body, MetadataRequest)


def test_an_answer_to_nothing_is_refused_and_changes_nothing() -> None:
    wire = ServerConnection()
    with pytest.raises(RuntimeError, match="no request is in flight"):
        wire.answered()
    wire.receive(framed(1))
    assert wire.next_request() is not None


def test_a_first_request_may_be_as_large_as_any() -> None:
    wire = ServerConnection()
    wire.receive(struct.pack(">i", 100 * 1024 * 1024))
    assert wire.announced() == 100 * 1024 * 1024
    wire = ServerConnection()
    wire.receive(struct.pack(">i", 100 * 1024 * 1024 + 1))
    with pytest.raises(WireError) as caught:
        wire.announced()
    assert caught.value.looks is Looks.OVERSIZE
    assert wire.state == "broken"


def test_what_is_kept_is_known() -> None:
    wire = ServerConnection()
    assert wire.held == 0
    two = framed(1) + framed(2)
    wire.receive(two)
    first = wire.next_request()
    assert first is not None
    assert wire.held == len(two)  # the chunk has another request in it
    assert wire.keeps(first)
    wire.receive(b"x")
    assert wire.held == len(two) + 1 + CHUNK_COST
    wire.answered()
    second = wire.next_request()
    assert second is not None
    assert not wire.keeps(second)
    assert wire.held == 1
    wire.answered()
    wire.drop()
    assert wire.held == 0
    wire.receive(struct.pack(">i", 1000) + bytes(100))
    assert wire.next_request() is None
    wire.receive(bytes(200))
    assert wire.held == 300


@pytest.mark.parametrize(
    "body",
    [
        b"\x00",
        b"\x00\x12\x00\x03\x00\x00\x00",  # ends inside the correlation id
        struct.pack(">hhi", 999, 0, 1) + b"\xff\xff",  # no such key
        struct.pack(">hhih", 18, 0, 1, 500),  # a client id that is not there
        bytes(range(200, 240)),
    ],
)
def test_a_first_frame_that_is_no_request_is_garbage(body: bytes) -> None:
    wire = ServerConnection()
    wire.receive(struct.pack(">i", len(body)) + body)
    with pytest.raises(WireError) as caught:
        wire.next_request()
    assert caught.value.looks is Looks.GARBAGE
    assert not wire.shown
    with pytest.raises(WireError):
        wire.next_request()


def test_later_frames_too_short_for_a_request_are_garbage() -> None:
    wire = ServerConnection()
    wire.receive(framed(1) + struct.pack(">i", 4) + b"\x00\x12\x00\x03")
    assert wire.next_request() is not None
    wire.answered()
    with pytest.raises(WireError):
        wire.next_request()


def test_the_limit_changes_at_run_time() -> None:
    wire = ServerConnection(limit=1000)
    wire.set_limit(50)
    wire.set_limit(2000)
    wire.receive(framed(1))
    assert wire.next_request() is not None
    wire.answered()
    wire.receive(struct.pack(">i", 2000))
    assert wire.announced() == 2000
    wire.set_limit(10)
    assert wire.announced() == 2000  # what has begun may end


@given(st.lists(st.binary(max_size=40), max_size=8), st.booleans())
def test_any_bytes_end_in_requests_or_in_a_wire_error(chunks: list[bytes], known: bool) -> None:
    wire = ServerConnection(limit=64)
    if known:
        wire.receive(framed(1))
        assert wire.next_request() is not None
        wire.answered()
    broken = False
    for chunk in chunks:
        wire.receive(chunk)
        try:
            while wire.next_request() is not None:
                wire.answered()
        except WireError:
            broken = True
        assert wire.state == ("broken" if broken else "open")
