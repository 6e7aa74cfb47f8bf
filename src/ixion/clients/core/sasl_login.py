"""Logs a connection in by SASL: SaslHandshake names the mechanism, SaslAuthenticate carries its messages.

    SaslHandshake(SCRAM-SHA-512)  ─▶        the broker knows the mechanism
    SaslAuthenticate(first)       ─▶        its answer goes to the exchange, which gives the next message
    SaslAuthenticate(proof)       ─▶        the broker has proved itself, too: done; `lifetime_s` is set (KIP-368)

A refusal is an AuthenticationError, because a retry would get the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ixion.clients.core.connection import Login
from ixion.clients.core.security import Credentials
from ixion.clients.faults import AuthenticationError, error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.sasl.exchange import ClientExchange, SaslRefusedError
from ixion.language.sasl.oauthbearer import OAuthBearerClient
from ixion.language.sasl.plain import PlainClient
from ixion.language.sasl.scram_client import ScramClient, ScramUser

HANDSHAKE_VERSION: Final = 1  # version 0 is followed by messages without Kafka's headers
WITH_PASSWORDS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (*WITH_PASSWORDS, "OAUTHBEARER")


class SaslCredentials(Credentials):
    def __init__(self, mechanism: str, name: str, password: str, by_token: bool = False) -> None:
        """`by_token`: name and password are those of a delegation token."""
        self.mechanism = mechanism
        self.name = name
        self._password = password
        self._scram = None if mechanism == "PLAIN" else ScramUser(mechanism, name, password, by_token)

    def __repr__(self) -> str:
        return f"<{self.mechanism} credentials of {self.name!r}>"

    def login(self) -> Login:
        return SaslLogin(self.mechanism, self._exchange)

    def _exchange(self) -> ClientExchange:
        if self._scram is None:
            return PlainClient(self.name, self._password)
        return ScramClient(self._scram)


class BearerCredentials(Credentials):
    """A signed token, or a function that returns one; it is called for every login, so the token may be renewed."""

    def __init__(self, give: Callable[[], str]) -> None:
        self._give = give

    def __repr__(self) -> str:
        return "<OAUTHBEARER credentials>"

    def login(self) -> Login:
        return SaslLogin("OAUTHBEARER", self._exchange)

    def _exchange(self) -> ClientExchange:
        return OAuthBearerClient(self._give())


class SaslLogin(Login):
    def __init__(self, mechanism: str, begin: Callable[[], ClientExchange]) -> None:
        self._mechanism = mechanism
        self._begin = begin
        self._exchange: ClientExchange | None = None
        self._version = 0  # of SaslAuthenticate

    def first(self, versions: dict[int, tuple[int, int]]) -> tuple[ApiKey, int, Struct] | None:
        handshake, authenticate = versions.get(ApiKey.SASL_HANDSHAKE), versions.get(ApiKey.SASL_AUTHENTICATE)
        if handshake is None or handshake[1] < HANDSHAKE_VERSION or authenticate is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the broker is too old to log in to (before Kafka 1.0)")
        self._version = min(authenticate[1], ApiKey.SASL_AUTHENTICATE.newest)
        self._exchange = None
        self.lifetime_s = 0.0
        return ApiKey.SASL_HANDSHAKE, HANDSHAKE_VERSION, SaslHandshakeRequest(mechanism=self._mechanism)

    def prepare(self, answer: Struct) -> Callable[[], object] | None:
        if self._exchange is None or not isinstance(answer, SaslAuthenticateResponse) or answer.error_code != 0:
            return None
        return self._exchange.prepare(bytes(answer.auth_bytes))

    def next(self, answer: Struct) -> tuple[ApiKey, int, Struct] | None:
        if isinstance(answer, SaslHandshakeResponse):
            self._check_handshake(answer)
            self._exchange = self._begin()
            return self._step(self._exchange.first())
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code != 0:
            code = error_code(answer.error_code)
            raise AuthenticationError(answer.error_message or code.explanation, code)
        self.lifetime_s = answer.session_lifetime_ms / 1000
        assert self._exchange is not None
        try:
            message = self._exchange.step(bytes(answer.auth_bytes))
        except SaslRefusedError as refusal:
            raise AuthenticationError(f"{self._mechanism}: {refusal}") from None
        return None if message is None else self._step(message)

    def _step(self, message: bytes) -> tuple[ApiKey, int, Struct]:
        return ApiKey.SASL_AUTHENTICATE, self._version, SaslAuthenticateRequest(auth_bytes=message)

    def _check_handshake(self, answer: SaslHandshakeResponse) -> None:
        code = error_code(answer.error_code)
        if code == ErrorCode.NONE:
            return
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms) or "none"
            raise AuthenticationError(f"the broker does not offer {self._mechanism}; it offers {offered}", code)
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            raise AuthenticationError("this listener of the broker takes no SASL login", code)
        raise AuthenticationError(f"the broker refused to begin a login: {code.explanation}", code)
