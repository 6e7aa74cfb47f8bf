"""A broker as its client sees it: answers belong to the oldest request, or the connection is over."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.envelope import frame_response_as
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.wire import ClientConnection, Looks, ServerConnection, WireError
from tests.wire.test_framing import cut, places


def answer(correlation_id: int, version: int = 3, error_code: int = 0) -> bytes:
    body = ApiVersionsResponse(error_code=error_code, api_keys=())
    return joined(frame_response_as(18, version, correlation_id, body))


@given(st.integers(1, 8), places)
def test_both_roles_understand_each_other_however_the_stream_is_cut(count: int, at: list[int]) -> None:
    client, server = ClientConnection("me"), ServerConnection()
    sent = b""
    for number in range(count):
        correlation_id, parts = client.request(18, 3, ApiVersionsRequest())
        assert correlation_id == number
        sent += b"".join(parts)
    answers = b""
    for chunk in cut(sent, at):
        server.receive(chunk)
        while (request := server.next_request()) is not None:
            answers += answer(request.correlation_id)
            server.answered()
    got = []
    for chunk in cut(answers, at):
        client.receive(chunk)
        while (reply := client.next_answer()) is not None:
            assert isinstance(reply.decode(), ApiVersionsResponse)
            got.append(reply.correlation_id)
    assert got == list(range(count))
    assert client.in_flight == 0


def test_a_broker_too_old_for_the_version_answers_in_version_0() -> None:
    client = ClientConnection()
    client.request(18, 4, ApiVersionsRequest())
    client.receive(answer(0, version=0, error_code=35))
    reply = client.next_answer()
    assert reply is not None
    body = reply.decode()
    assert isinstance(body, ApiVersionsResponse)
    assert body.error_code == 35


def test_an_answer_out_of_turn_ends_the_connection() -> None:
    client = ClientConnection()
    client.request(18, 3, ApiVersionsRequest())
    client.request(18, 3, ApiVersionsRequest())
    client.receive(answer(1) + answer(0))
    for _ in range(2):
        with pytest.raises(WireError, match="response to 1, but the next one must be to 0") as caught:
            client.next_answer()
        assert caught.value.looks is Looks.ORDER


def test_a_response_to_no_request_ends_the_connection() -> None:
    client = ClientConnection()
    client.request(18, 3, ApiVersionsRequest(), answered=False)
    client.receive(answer(0))
    with pytest.raises(WireError, match="no request is pending"):
        client.next_answer()


def test_an_answer_without_a_header_ends_the_connection() -> None:
    client = ClientConnection()
    client.receive(struct.pack(">i", 2) + b"xx")
    with pytest.raises(WireError, match="a response of 2 bytes"):
        client.next_answer()
