"""The listeners of the network from the broker's settings: addresses, TLS, and who must authenticate."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.errors import StartupError
from ixion.config import network_settings as network
from ixion.config import security_settings as security
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import Endpoint, listeners
from ixion.network import Listener
from ixion.security.credentials import ScramCredentials
from ixion.security.gate import Gate, MakeExchange
from ixion.security.tokens import Tokens

if TYPE_CHECKING:
    import ssl

    from ixion.sasl.scram import ScramCredential

SUPPORTED: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CERTIFICATES_CHECK_S: Final = 1.0


def listeners_of(config: BrokerConfig, credentials: ScramCredentials, tokens: Tokens) -> list[Listener]:
    known = listeners(config)
    backlog = config[network.SOCKET_LISTEN_BACKLOG_SIZE]
    return [
        Listener(
            name=endpoint.listener,
            host=endpoint.host,
            port=endpoint.port,
            control_plane=endpoint.listener == known.control_plane,
            inter_broker=endpoint.listener == known.inter_broker and len(known.bound) > 1,
            tls=Certificates(config, endpoint.listener).context if uses_tls(endpoint) else None,
            gate=gate_of(config, endpoint.listener, credentials, tokens) if uses_sasl(endpoint) else None,
            first_max_bytes=config[security.SASL_SERVER_MAX_RECEIVE_SIZE],
            backlog=max(backlog, 1024),
        )
        for endpoint in known.bound
    ]


def uses_tls(endpoint: Endpoint) -> bool:
    return endpoint.protocol in ("SSL", "SASL_SSL")


def uses_sasl(endpoint: Endpoint) -> bool:
    return endpoint.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def authenticates(config: BrokerConfig, endpoint: Endpoint) -> bool:
    """Whether every client of the listener must authenticate."""
    return uses_sasl(endpoint) or (
        uses_tls(endpoint) and config.of_listener(endpoint.listener, security.SSL_CLIENT_AUTH) == "required"
    )


def check_security(config: BrokerConfig, endpoint: Endpoint) -> None:
    """StartupError if the listener could serve no client."""
    try:
        if uses_tls(endpoint):
            Certificates(config, endpoint.listener)
        if uses_sasl(endpoint):
            mechanisms_of(config, endpoint.listener, ScramCredentials(), Tokens(None, now_ms))
    except InvalidSettingError as error:
        raise StartupError(f"listener {endpoint}: {error}") from error


def gate_of(config: BrokerConfig, listener: str, credentials: ScramCredentials, tokens: Tokens) -> Callable[[], Gate]:
    mechanisms = mechanisms_of(config, listener, credentials, tokens)
    lifetime_ms = config.of_listener(listener, security.CONNECTIONS_MAX_REAUTH_MS)
    return partial(Gate, mechanisms, lifetime_ms, lambda: time.monotonic_ns() // 1_000_000, now_ms)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def mechanisms_of(
    config: BrokerConfig, listener: str, credentials: ScramCredentials, tokens: Tokens
) -> dict[str, MakeExchange]:
    """InvalidSettingError for a mechanism that is not there, or has no users to compare with."""
    # Imported only by a broker that authenticates.
    from ixion.sasl.plain import PlainExchange
    from ixion.sasl.scram import MECHANISMS, ScramExchange

    setting = security.SASL_ENABLED_MECHANISMS
    made: dict[str, MakeExchange] = {}
    for mechanism in config.of_listener(listener, setting):
        if mechanism in MECHANISMS:
            find: Callable[[str], ScramCredential | None] = partial(_find, credentials, mechanism)
            made[mechanism] = partial(ScramExchange, mechanism, find, find_token=partial(tokens.login, mechanism))
        elif mechanism == "PLAIN":
            made[mechanism] = partial(PlainExchange, _plain_users(config, listener))
        else:
            raise InvalidSettingError(setting.name, mechanism, f"one or more of {', '.join(SUPPORTED)}")
    if not made:
        raise InvalidSettingError(setting.name, "", f"one or more of {', '.join(SUPPORTED)}")
    return made


def _find(credentials: ScramCredentials, mechanism: str, user: str) -> ScramCredential | None:
    return credentials.find(user, mechanism)


def _plain_users(config: BrokerConfig, listener: str) -> dict[str, str]:
    from ixion.security.jaas import plain_users

    name = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
    text = config.jaas_of(listener, "PLAIN")
    if text is None:
        raise InvalidSettingError(name, "", "set, with the users and their passwords")
    try:
        return plain_users(text)
    except ValueError as error:
        raise InvalidSettingError(name, "[hidden]", f"a login module with users: {error}") from None


class Certificates:
    """The TLS context of a listener. When its files change, connections from then on get the new certificate."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        """InvalidSettingError if there is no certificate that can be used."""
        from ixion.security.tls import context_of, files_of

        self._make = partial(context_of, config, listener)
        self._files = files_of(config, listener)
        self._stamps = [_stamp(path) for path in self._files]
        self._context = self._make()
        self._looked_s = time.monotonic()

    def context(self) -> ssl.SSLContext:
        now_s = time.monotonic()
        if now_s - self._looked_s >= CERTIFICATES_CHECK_S:
            self._looked_s = now_s
            stamps = [_stamp(path) for path in self._files]
            if stamps != self._stamps:
                self._stamps = stamps
                # A file that is being replaced may be missing or half written; the next look finds the rest.
                with suppress(InvalidSettingError, OSError):
                    self._context = self._make()
        return self._context


def _stamp(path: str) -> tuple[int, int]:
    """Changes when the file does. A file that is not there has one as well."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
