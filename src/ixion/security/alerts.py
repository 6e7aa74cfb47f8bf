"""Tells a client why its TLS handshake fails: by an alert, before the connection ends.

OpenSSL writes the alert (certificate unknown, no common version, …) when it finds the fault. Neither asyncio nor uvloop
sends it: both end the connection as soon as the handshake raises, and the client sees only that. So the contexts of
listeners make TLS objects that send the alert themselves, on the socket that the task of the handshake has named.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

# Of the connection whose handshake the present task waits for; the loop calls the TLS object in that task's context.
_SOCKET: Final[ContextVar[socket.socket | None]] = ContextVar("socket", default=None)


def send_alerts_on(accepted: socket.socket) -> None:
    """For the handshake that this task begins."""
    _SOCKET.set(accepted)


class _Alerting(ssl.SSLObject):
    alerts_to: tuple[ssl.MemoryBIO, socket.socket] | None = None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.alerts_to is not None:
                outgoing, accepted = self.alerts_to
                with suppress(OSError):  # the client has gone; the handshake fails anyhow
                    accepted.send(outgoing.read())
                    accepted.shutdown(socket.SHUT_WR)
            raise


class AlertingContext(ssl.SSLContext):
    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *others: Any, **named: Any) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, *others, **named)
        accepted = _SOCKET.get()
        if accepted is not None and isinstance(made, _Alerting):
            made.alerts_to = (outgoing, accepted)
        return made


AlertingContext.sslobject_class = _Alerting
