"""PLAIN (RFC 4616): name and password in plain text, so only for listeners with TLS, or on the local machine.

[authorization id] NUL name NUL password
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from ixion.language.sasl.exchange import ClientExchange, Exchange, SaslRefusedError


class PlainExchange(Exchange):
    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._user: str | None = None

    @property
    def user(self) -> str | None:
        return self._user

    def step(self, received: bytes) -> bytes:
        try:
            identity, name, password = received.decode().split("\0")
        except ValueError:  # also from `decode`
            raise SaslRefusedError("PLAIN expects an optional identity, a name and a password") from None
        if not name or not password:
            raise SaslRefusedError("PLAIN expects a name and a password")
        known = self._passwords.get(name)
        # Compare in constant time, also for an unknown name.
        same = hmac.compare_digest((known or "").encode(), password.encode())
        if known is None or not same:
            raise SaslRefusedError("wrong name or password")
        if identity not in ("", name):
            raise SaslRefusedError("acting as another user (authzid) is not supported")
        self._user = name
        return b""


def plain_message(name: str, password: str) -> bytes:
    """The client's message."""
    return f"\0{name}\0{password}".encode()


class PlainClient(ClientExchange):
    def __init__(self, name: str, password: str) -> None:
        self._message = plain_message(name, password)

    def first(self) -> bytes:
        return self._message

    def step(self, received: bytes) -> bytes | None:  # noqa: ARG002 (the broker has nothing to say)
        return None
