"""OAUTHBEARER (RFC 7628): the client shows a token that an identity provider has signed.

    client   n,,^Aauth=Bearer TOKEN^A^A                (^A is the byte 1)
    server   an empty message: the client is authenticated until the token expires
          or {"status":"invalid_token"}, to which the client responds ^A; then authentication fails

The keys are not here: `validate` checks a token (`security.bearer_tokens`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from ixion.language.sasl.exchange import ClientExchange, Exchange, SaslRefusedError

MECHANISM: Final = "OAUTHBEARER"
MAX_MESSAGE: Final = 65_536
AT_ONCE: Final = b"\x01"
REFUSAL: Final = b'{"status":"invalid_token"}'
# RFC 7628: a header without channel binding, then pairs, each ended by the byte 1, and one more byte 1 at the end.
_MESSAGE: Final = re.compile(rb"n,(?:a=([^,\x00]*))?,\x01((?:[A-Za-z]+=[\x20-\x7e\t\r\n]*\x01)+)\x01", re.ASCII)
_BEARER: Final = re.compile(rb"bearer +([-_.~+/A-Za-z0-9]+=*)", re.IGNORECASE)


class Bearer(NamedTuple):
    """The content of a valid token."""

    user: str
    expires_ms: int


class OAuthBearerExchange(Exchange):
    """The broker's side. `validate` raises SaslRefusedError for an invalid token."""

    def __init__(self, validate: Callable[[str], Bearer]) -> None:
        self._validate = validate
        self._bearer: Bearer | None = None
        self._refusal: SaslRefusedError | None = None

    @property
    def user(self) -> str | None:
        return None if self._bearer is None else self._bearer.user

    @property
    def expires_ms(self) -> int | None:
        return None if self._bearer is None else self._bearer.expires_ms

    def step(self, received: bytes) -> bytes:
        if self._refusal is not None:
            raise self._refusal
        if self._bearer is not None:
            raise SaslRefusedError("the exchange has ended")
        identity, token = parse(received)
        try:
            bearer = self._validate(token)
        except SaslRefusedError as refusal:
            self._refusal = refusal
            return REFUSAL
        if identity not in ("", bearer.user):
            raise SaslRefusedError("acting as another user (authzid) is not supported")
        self._bearer = bearer
        return b""


def parse(received: bytes) -> tuple[str, str]:
    """Authorization id and token of the client's message."""
    if len(received) > MAX_MESSAGE:
        raise SaslRefusedError("an OAUTHBEARER message is too long")
    found = _MESSAGE.fullmatch(received)
    if found is None:
        raise SaslRefusedError("an OAUTHBEARER message cannot be read")
    pairs = [pair.partition(b"=") for pair in found[2].split(b"\x01")[:-1]]
    values = [value for name, _, value in pairs if name == b"auth"]
    bearer = _BEARER.fullmatch(values[0]) if len(values) == 1 else None
    if bearer is None:
        raise SaslRefusedError("an OAUTHBEARER message must have one bearer token")
    try:
        identity = (found[1] or b"").decode().replace("=2C", ",").replace("=3D", "=")
    except UnicodeDecodeError:
        raise SaslRefusedError("an OAUTHBEARER message cannot be read") from None
    return identity, bearer[1].decode()


class OAuthBearerClient(ClientExchange):
    def __init__(self, token: str) -> None:
        self._message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()

    def first(self) -> bytes:
        return self._message

    def step(self, received: bytes) -> bytes | None:
        """An empty message is success. Otherwise it has the reason, and the broker waits for one more byte."""
        return AT_ONCE if received else None
