"""The caller of a request: the user of a session, of an Authorization header, or anybody where clients need no login.

A login is that of a Kafka client: the page takes the client's side of a SASL exchange, and the gate of a listener
(`security.gate`) the broker's, with the same credentials. A password is tried with each mechanism that takes one, and
with all of them if none succeeds. A login that fails is answered after a fixed time, whatever was wrong; an address has
few attempts (`attempts`), and few logins run at a time.
"""

from __future__ import annotations

import asyncio
import logging
import os
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ixion.broker.security.principal import ANONYMOUS
from ixion.broker.web.console.attempts import Attempts
from ixion.broker.web.console.caller import Caller
from ixion.broker.web.console.sessions import LONGEST_S, Session, Sessions
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError
from ixion.language.model.errors import ErrorCode
from ixion.language.sasl.exchange import ClientExchange, SaslRefusedError

if TYPE_CHECKING:
    from ixion.broker.acl.authorizer import Authorizer
    from ixion.broker.security.credentials import ScramCredentials
    from ixion.broker.security.gate import Gate

FAILED_S: Final = 1.0  # from the request to the refusal, at least
AT_ONCE: Final = 8  # logins
MOST_TEXT: Final = 1_000  # characters of a name or password
WITH_PASSWORD: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")
WITH_TOKEN: Final = "OAUTHBEARER"  # noqa: S105

logger = logging.getLogger(__name__)


class Way(NamedTuple):
    """A listener by which users log in, and its mechanisms."""

    mechanisms: Sequence[str]
    make_gate: Callable[[], Gate]


class Claim(NamedTuple):
    """Whom a client claims to be: a user with a password, or the one that a token names."""

    user: str = ""
    password: str = ""
    token: str = ""


class SignInError(RefusedError):
    def __init__(self, text: str) -> None:
        super().__init__(401, text)


class Door:
    def __init__(
        self,
        *,
        asks: bool,
        ways: Callable[[], Sequence[Way]],
        authorizer: Authorizer | None,
        credentials: ScramCredentials,
        patience_ms: Callable[[], int],
        is_secure: bool,
        port: int,
    ) -> None:
        """`asks`: clients must log in. `patience_ms`: connection.failed.authentication.delay.ms. `is_secure`: TLS."""
        self.asks = asks
        self.sessions = Sessions()
        self._ways = ways
        self._authorizer = authorizer
        self._credentials = credentials
        self._patience_ms = patience_ms
        self._is_secure = is_secure
        # Browsers send a cookie to all ports of a host: three brokers on one machine have three sessions.
        self._cookie = f"__Host-ixion-{port}" if is_secure else f"ixion-{port}"
        self._attempts = Attempts()
        self._trying = 0

    @property
    def takes_tokens(self) -> bool:
        return any(WITH_TOKEN in way.mechanisms for way in self._ways())

    @property
    def takes_passwords(self) -> bool:
        return any(each in way.mechanisms for way in self._ways() for each in WITH_PASSWORD)

    async def caller_of(self, request: HttpRequest) -> Caller:
        """SignInError if a login is needed and missing."""
        if not self.asks:
            return self._caller(request.address, "" if self._authorizer is None else ANONYMOUS, None)
        session = await self._session_of(request)
        if session is None:
            raise SignInError("clients of this broker must log in")
        return self._caller(request.address, session.gate.principal, session)

    def _caller(self, address: str, principal: str, session: Session | None) -> Caller:
        authorizer = self._authorizer
        rights = None if authorizer is None else authorizer.rights_of(principal, address)
        return Caller(address, principal, None if session is None else session.gate, rights, session)

    async def _session_of(self, request: HttpRequest) -> Session | None:
        given = request.headers.get("authorization", "")
        if given:
            # An attacker who guesses must not learn by such a session that a password is right.
            self._attempts.check(request.address)
            secret = f"header {given}"
            found = self.sessions.find(secret)
            return found if found is not None else await self._log_in(request.address, claim_of(given), secret)
        secret = self._secret_of(request)
        return self.sessions.find(secret) if secret else None

    def _secret_of(self, request: HttpRequest) -> str:
        for part in request.headers.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self._cookie:
                return f"cookie {value}"
        return ""

    # Coming and going

    async def sign_in(self, address: str, claim: Claim) -> tuple[Session, str]:
        """The session, and the cookie by which it is found."""
        secret = os.urandom(32).hex()
        session = await self._log_in(address, claim, f"cookie {secret}")
        return session, self._set_cookie(secret, LONGEST_S)

    def sign_out(self, request: HttpRequest) -> str:
        """The cookie that takes the other one away."""
        secret = self._secret_of(request)
        if secret:
            self.sessions.end(secret)
        return self._set_cookie("", 0)

    def _set_cookie(self, secret: str, max_age_s: int) -> str:
        made = f"{self._cookie}={secret}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict"
        return f"{made}; Secure" if self._is_secure else made

    # The login

    async def _log_in(self, address: str, claim: Claim, secret: str) -> Session:
        """SignInError if the claim is wrong."""
        loop = asyncio.get_running_loop()
        until = loop.time() + max(FAILED_S, self._patience_ms() / 1000)
        self._attempts.take(address)
        if self._trying >= AT_ONCE:
            raise RefusedError(503, "too many logins at this moment")
        self._trying += 1
        try:
            gate, mechanism = await self._opened(claim)
        finally:
            self._trying -= 1  # before the pause: eight guesses would keep all others out
        if gate is None:
            logger.info("refused %s at the live page: wrong user name, password or token", address)
            await asyncio.sleep(until - loop.time())
            raise SignInError("wrong user name or password" if not claim.token else "the token is not accepted")
        self._attempts.give_back(address)
        return self.sessions.keep(secret, gate, self._lasting(gate, mechanism))

    async def _opened(self, claim: Claim) -> tuple[Gate | None, str]:
        if max(map(len, claim[:2])) > MOST_TEXT or not (claim.token or claim.user):
            return None, ""
        for way in self._ways():
            for mechanism in (WITH_TOKEN,) if claim.token else WITH_PASSWORD:
                if mechanism in way.mechanisms:
                    gate = way.make_gate()
                    if await passes(gate, mechanism, partial(client_of, mechanism, claim)):
                        return gate, mechanism
        return None, ""

    def _lasting(self, gate: Gate, mechanism: str) -> Callable[[], bool]:
        """A credential of SCRAM may be changed or deleted; all others are settings, or expire."""
        if not mechanism.startswith("SCRAM"):
            return always
        user = gate.principal.partition(":")[2]
        used = self._credentials.find(user, mechanism)
        return lambda: self._credentials.find(user, mechanism) == used


def always() -> bool:
    return True


def client_of(mechanism: str, claim: Claim) -> ClientExchange:
    from ixion.language.sasl.oauthbearer import OAuthBearerClient
    from ixion.language.sasl.plain import PlainClient
    from ixion.language.sasl.scram_client import ScramClient, ScramUser

    if mechanism == WITH_TOKEN:
        return OAuthBearerClient(claim.token)
    if mechanism == "PLAIN":
        return PlainClient(claim.user, claim.password)
    return ScramClient(ScramUser(mechanism, claim.user, claim.password))


async def passes(gate: Gate, mechanism: str, make_client: Callable[[], ClientExchange]) -> bool:
    """Whether the client's side of the exchange opens the gate."""
    if gate.choose(mechanism) != ErrorCode.NONE:
        return False
    try:
        client = make_client()
        message: bytes | None = client.first()
        while message is not None:
            answer = gate.authenticate(message)
            if answer.code != ErrorCode.NONE or gate.is_open:
                return gate.is_open
            work = client.prepare(answer.data)
            if work is not None:
                await asyncio.to_thread(work)  # the password is salted, which takes milliseconds
            message = client.step(answer.data)
    except (SaslRefusedError, UnicodeEncodeError):  # half of a surrogate pair is no text
        pass
    return False


def claim_of(header: str) -> Claim:
    """SignInError if the header is no login."""
    kind, _, text = header.strip().partition(" ")
    if kind.lower() == "bearer" and text.strip():
        return Claim(token=text.strip())
    if kind.lower() == "basic":
        try:
            user, colon, password = b64decode(text.strip(), validate=True).decode().partition(":")
        except ValueError:
            user, colon, password = "", "", ""
        if colon:
            return Claim(user, password)
    raise SignInError("Authorization is Basic with user and password, or Bearer with a token")
