from __future__ import annotations

import pytest

from ixion.language.sasl.exchange import SaslRefusedError
from ixion.language.sasl.plain import PlainExchange, plain_message

USERS = {"alice": "secret", "empty": ""}


@pytest.mark.parametrize("identity", ["", "alice"])
def test_the_right_password(identity: str) -> None:
    exchange = PlainExchange(USERS)
    assert exchange.step(identity.encode() + plain_message("alice", "secret")) == b""
    assert exchange.user == "alice"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (plain_message("alice", "wrong"), "wrong name or password"),
        (plain_message("nobody", "secret"), "wrong name or password"),
        (plain_message("empty", ""), "a name and a password"),
        (plain_message("", "secret"), "a name and a password"),
        (b"bob" + plain_message("alice", "secret"), "another user"),
        (b"", "expects"),
        (b"alice\0secret", "expects"),
        (b"\0alice\0secret\0more", "expects"),
        (b"\0\xff\0secret", "expects"),
    ],
)
def test_what_is_refused(message: bytes, text: str) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(SaslRefusedError, match=text):
        exchange.step(message)
    assert exchange.user is None
