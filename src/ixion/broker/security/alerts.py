"""Sends a client the TLS alert that says why its handshake failed, before the connection is closed.

OpenSSL writes the alert (certificate unknown, no common version, …) when the handshake fails. Neither asyncio nor
uvloop sends it: both close the connection as soon as the handshake raises, and the client sees only that. So the
contexts of listeners make TLS objects that send the alert themselves, on the socket that the handshake's task has set.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

# The socket of the current task's handshake; the loop calls the TLS object in that task's context.
_SOCKET: Final[ContextVar[socket.socket | None]] = ContextVar("socket", default=None)


def send_alerts_on(accepted: socket.socket) -> None:
    """Set the socket for the handshake of this task."""
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
                with suppress(OSError):  # the client has closed; the handshake fails anyway
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
