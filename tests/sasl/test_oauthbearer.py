"""OAUTHBEARER as a machine: its messages, and what becomes of a token that is not good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.language.sasl.exchange import SaslRefusedError
from ixion.language.sasl.oauthbearer import MAX_MESSAGE, REFUSAL, Bearer, OAuthBearerClient, OAuthBearerExchange, parse

ALICE = Bearer("alice", 5_000)


def validate(token: str) -> Bearer:
    if token != "good.to-ken_~+/=":
        raise SaslRefusedError("it has expired")
    return ALICE


def test_both_sides() -> None:
    server, client = OAuthBearerExchange(validate), OAuthBearerClient("good.to-ken_~+/=")
    answer = server.step(client.first())
    assert (answer, server.user, server.expires_ms, server.by_token) == (b"", "alice", 5_000, False)
    assert client.step(answer) is None
    with pytest.raises(SaslRefusedError):
        server.step(client.first())


def test_a_refused_client_learns_that_the_token_is_invalid_and_is_refused_after_one_more_byte() -> None:
    server, client = OAuthBearerExchange(validate), OAuthBearerClient("other")
    answer = server.step(client.first())
    assert (answer, server.user) == (REFUSAL, None)
    last = client.step(answer)
    assert last == b"\x01"
    for message in (last, OAuthBearerClient("good.to-ken_~+/=").first()):  # a second try is none
        with pytest.raises(SaslRefusedError, match="expired"):
            server.step(message)
    assert server.user is None


def test_acting_as_another_user_is_refused() -> None:
    for identity, accepted in ((b"", True), (b"a=alice", True), (b"a=bob", False), (b"a=", True)):
        server = OAuthBearerExchange(validate)
        message = b"n," + identity + b",\x01auth=Bearer good.to-ken_~+/=\x01\x01"
        if accepted:
            server.step(message)
            assert server.user == "alice"
        else:
            with pytest.raises(SaslRefusedError, match="another user"):
                server.step(message)
            assert server.user is None


def test_extensions_and_other_spellings() -> None:
    assert parse(b"n,a=a=2Cb=3D,\x01host=x\x01port=1\x01auth=bearer  T\x01traceId=1\x01\x01") == ("a,b=", "T")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer x y\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01host=x\x01\x01",
        b"n,,\x01au\x02th=Bearer x\x01\x01",
        b"n,a=\xff,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\x01\x01more",
        b"n,,\x01auth=Bearer " + b"x" * MAX_MESSAGE + b"\x01\x01",
    ],
)
def test_messages_that_are_none(message: bytes) -> None:
    server = OAuthBearerExchange(validate)
    with pytest.raises(SaslRefusedError):
        server.step(message)
    assert server.user is None


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_lead_to_a_refusal(message: bytes) -> None:
    server = OAuthBearerExchange(validate)
    try:
        server.step(message)
    except SaslRefusedError:
        pass
    assert server.user is None
