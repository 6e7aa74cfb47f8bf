"""The TLS context of a listener, and how it changes while the broker runs: new connections get the new one.

- When its files change: the broker checks them at most once a second, when a client connects.
- When its settings change (KIP-226): `kafka-configs --entity-type brokers --entity-name 1 --alter --add-config
  listener.name.external.ssl.keystore.location=/new.pem`. A certificate that cannot be used is refused. So is one with
  another subject, or without a name of the present one, unless ssl.allow.dn.changes or ssl.allow.san.changes allows it:
  clients could not tell that this is the same broker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ixion.config import security_settings as security
from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError

if TYPE_CHECKING:
    import ssl

CHECK_S: Final = 1.0


class Certificates:
    _make: Callable[[], ssl.SSLContext]
    _context: ssl.SSLContext
    _files: list[str]
    _stamps: list[tuple[int, int]]
    _looked_s: float

    def __init__(self, config: BrokerConfig, listener: str, *, as_client: bool = False) -> None:
        """InvalidSettingError if there is no usable certificate. `as_client`: the context to connect to that listener
        of other brokers."""
        self._listener = listener
        self._as_client = as_client
        self._take(config)

    def context(self) -> ssl.SSLContext:
        now_s = time.monotonic()
        if now_s - self._looked_s >= CHECK_S:
            self._looked_s = now_s
            stamps = [_stamp(path) for path in self._files]
            if stamps != self._stamps:
                self._stamps = stamps
                # A file that is being replaced may be missing or half written; the next check loads it.
                with suppress(InvalidSettingError, OSError):
                    self._context = self._make()
        return self._context

    def check(self, before: BrokerConfig, after: BrokerConfig) -> None:
        """InvalidSettingError if a changed certificate cannot replace the present one."""
        if self._settings(before) == self._settings(after):
            return
        if self._as_client:
            self._check_peers(after)
            return
        import ssl

        from ixion.broker.security.own_certificate import names_of
        from ixion.broker.security.tls import context_of

        name = security.SSL_KEYSTORE_LOCATION.name
        shown = after.of_listener(self._listener, security.SSL_KEYSTORE_LOCATION) or ""
        made = context_of(after, self._listener)
        try:
            new = names_of(made)
        except ssl.SSLError as error:
            raise InvalidSettingError(name, shown, f"a certificate that is valid ({error.reason or error})") from error
        try:
            old = names_of(context_of(before, self._listener))
        except (InvalidSettingError, ssl.SSLError):
            return  # the present certificate is unusable: accept any
        if new.subject != old.subject and not after.of_listener(self._listener, security.SSL_ALLOW_DN_CHANGES):
            raise InvalidSettingError(
                name, shown, "a certificate with the same subject (ssl.allow.dn.changes is false)"
            )
        lost = old.alternatives - new.alternatives
        if lost and not after.of_listener(self._listener, security.SSL_ALLOW_SAN_CHANGES):
            raise InvalidSettingError(name, shown, "a certificate with the same names (ssl.allow.san.changes is false)")

    def _check_peers(self, after: BrokerConfig) -> None:
        """This broker must trust its own certificate: other brokers have the same authorities and verify it."""
        import ssl

        from ixion.broker.security.own_certificate import check_pair
        from ixion.broker.security.tls import client_context_of, context_of

        stores = (security.SSL_TRUSTSTORE_LOCATION, security.SSL_TRUSTSTORE_CERTIFICATES)
        if not any(after.of_listener(self._listener, store) for store in stores):
            return  # the system's authorities apply, which may differ between brokers
        try:
            check_pair(context_of(after, self._listener), client_context_of(after, self._listener))
        except ssl.SSLError as error:
            shown = after.of_listener(self._listener, security.SSL_KEYSTORE_LOCATION) or ""
            allowed = f"a certificate that brokers with the same trust store believe ({error.reason or error})"
            raise InvalidSettingError(security.SSL_KEYSTORE_LOCATION.name, shown, allowed) from error

    def change(self, before: BrokerConfig, after: BrokerConfig) -> None:
        if self._settings(before) != self._settings(after):
            self._take(after)

    def _take(self, config: BrokerConfig) -> None:
        from ixion.broker.security.tls import client_context_of, context_of, files_of

        make = partial(client_context_of if self._as_client else context_of, config, self._listener)
        files = files_of(config, self._listener)
        stamps = [_stamp(path) for path in files]
        self._context = make()
        self._make, self._files, self._stamps = make, files, stamps
        self._looked_s = time.monotonic()

    def _settings(self, config: BrokerConfig) -> list[Any]:
        return [config.of_listener(self._listener, setting) for setting in security.OF_CONTEXTS]


def _stamp(path: str) -> tuple[int, int]:
    """A value that changes with the file, also for a missing file."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
