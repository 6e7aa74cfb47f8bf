"""The gate of a connection on a SASL listener: which requests may pass, and the principal of the client.

| state         | ApiVersions | SaslHandshake        | SaslAuthenticate             | any other request |
|---------------|-------------|----------------------|------------------------------|-------------------|
| CLOSED        | passes      | CHOSEN, or refused   | ILLEGAL_SASL_STATE, refused  | connection ends   |
| CHOSEN        | passes      | ILLEGAL_SASL_STATE   | CHOSEN, OPEN, or refused     | connection ends   |
| OPEN          | passes      | CHOSEN (again)       | ILLEGAL_SASL_STATE           | passes            |
| OPEN, expired | passes      | CHOSEN (again)       | ILLEGAL_SASL_STATE           | connection ends   |

A refused client gets its response after connection.failed.authentication.delay.ms, and then the connection is closed. A
client that re-authenticates (KIP-368) must be the same user and use the same mechanism. If the proof expires (a
delegation token, a signed token), the gate closes then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ixion.broker.security.principal import ANONYMOUS
from ixion.language.model.errors import ErrorCode
from ixion.language.sasl.exchange import Exchange, SaslRefusedError

if TYPE_CHECKING:
    import asyncio

API_VERSIONS: Final = 18
HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
_ALWAYS: Final = frozenset({API_VERSIONS, HANDSHAKE, AUTHENTICATE})

MakeExchange = Callable[[], Exchange]


class SaslAnswer(NamedTuple):
    """The response to SaslAuthenticate. `ends`: the connection is closed after it."""

    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    data: bytes = b""
    lifetime_ms: int = 0
    ends: bool = False


class Gate:
    def __init__(
        self,
        mechanisms: Mapping[str, MakeExchange],
        max_reauth_ms: int,
        monotonic_ms: Callable[[], int],
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.mechanisms = mechanisms
        self.principal = ANONYMOUS
        self._max_reauth_ms = max_reauth_ms
        self._monotonic_ms = monotonic_ms
        self._clock_ms = clock_ms
        self.is_bare = False  # SASL messages have no headers in both directions (SaslHandshake 0)
        self.by_token = False  # whether the client authenticated with a delegation token
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._open = False
        self._expires_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the client is authenticated. Until then its requests must be small."""
        return self._open

    def admits(self, api_key: int) -> bool:
        if api_key in _ALWAYS:
            return True
        if not self._open or self._exchange is not None:
            return False
        return self._expires_ms is None or self._monotonic_ms() < self._expires_ms

    def choose(self, mechanism: str) -> ErrorCode:
        """SaslHandshake."""
        if self._exchange is not None:
            return ErrorCode.ILLEGAL_SASL_STATE
        make = self.mechanisms.get(mechanism)
        if make is None:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        if self._open and mechanism != self._mechanism:
            return ErrorCode.ILLEGAL_SASL_STATE
        self._mechanism = mechanism
        self._exchange = make()
        return ErrorCode.NONE

    def prepare(self, received: bytes) -> asyncio.Future[Any] | None:
        """A future that must be done before `authenticate` is called with this message, if any."""
        return None if self._exchange is None else self._exchange.prepare(received)

    def authenticate(self, received: bytes) -> SaslAnswer:
        """SaslAuthenticate."""
        exchange = self._exchange
        if exchange is None:
            text = "SaslAuthenticate without a SaslHandshake"
            return SaslAnswer(code=ErrorCode.ILLEGAL_SASL_STATE, message=text, ends=not self._open)
        try:
            data = exchange.step(received)
            user = exchange.user
            if user is not None and self._open and self.principal != f"User:{user}":
                raise SaslRefusedError("a connection cannot change its user")
        except SaslRefusedError as refusal:
            self._exchange = None
            self._open = False
            return SaslAnswer(
                code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                message=f"authentication by {self._mechanism} failed: {refusal}",
                ends=True,
            )
        if user is None:
            return SaslAnswer(data=data)
        self._exchange = None
        self._open = True
        self.principal = f"User:{user}"
        self.by_token = exchange.by_token
        lifetime_ms = self._lifetime_ms(exchange)
        self._expires_ms = self._monotonic_ms() + lifetime_ms if lifetime_ms > 0 else None
        return SaslAnswer(data=data, lifetime_ms=lifetime_ms)

    def _lifetime_ms(self, exchange: Exchange) -> int:
        """How long the client stays authenticated: until its proof expires, at most connections.max.reauth.ms; 0: no
        limit."""
        if exchange.expires_ms is None:
            return self._max_reauth_ms
        left_ms = max(exchange.expires_ms - self._clock_ms(), 1)
        return min(left_ms, self._max_reauth_ms) if self._max_reauth_ms > 0 else left_ms
