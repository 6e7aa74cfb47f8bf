"""The listeners of the network from the broker's settings: addresses, TLS, and who must authenticate."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.errors import StartupError
from ixion.broker.mechanisms import Logins, gate_of, mechanisms_of
from ixion.config import network_settings as network
from ixion.config import security_settings as security
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import Endpoint, listeners
from ixion.network import Listener

if TYPE_CHECKING:
    import ssl

CERTIFICATES_CHECK_S: Final = 1.0


def listeners_of(config: BrokerConfig, logins: Logins) -> list[Listener]:
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
            gate=gate_of(config, endpoint.listener, logins) if uses_sasl(endpoint) else None,
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
            mechanisms_of(config, endpoint.listener, Logins(is_trial=True))
    except InvalidSettingError as error:
        raise StartupError(f"listener {endpoint}: {error}") from error


class Certificates:
    """The TLS context of a listener. When its files change, connections from then on get the new certificate."""

    def __init__(self, config: BrokerConfig, listener: str, *, as_client: bool = False) -> None:
        """InvalidSettingError if there is no certificate that can be used. `as_client`: to connect to that listener of
        other brokers."""
        from ixion.security.tls import client_context_of, context_of, files_of

        self._make = partial(client_context_of if as_client else context_of, config, listener)
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
