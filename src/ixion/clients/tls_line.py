"""A line over TLS: does the handshake once the socket is connected, then carries the machine's bytes.

The machine is CONNECTING until the handshake is done, so `socket.connection.setup.timeout.ms` bounds that as well. A
broker with an invalid certificate, that refuses ours, or that speaks no TLS is an AuthenticationError: a retry would
not help. With TLS 1.3 a broker refuses our certificate only after the handshake; its alert comes instead of the first
answer, so alerts count until the machine is READY.

Two rules of OpenSSL: a write that has to wait is repeated with the same bytes; and bytes that OpenSSL has already
decrypted do not make the socket readable, so they are read until none is left.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import select
import ssl
from typing import Final

from ixion.clients.core.connection import CLOSED, NEGOTIATING, READY, ConnectionMachine
from ixion.clients.core.security import Tls
from ixion.clients.dial import Place
from ixion.clients.faults import AuthenticationError
from ixion.clients.line import Line, reason

READ_BYTES: Final = 1024 * 1024  # that are handed on at once
RECORD_BYTES: Final = 16 * 1024  # the most that one read gives


class TlsLine(Line):
    def __init__(self, machine: ConnectionMachine, tls: Tls, places: list[Place] | None = None) -> None:
        super().__init__(machine, places)
        self._tls = tls
        self._secured: ssl.SSLSocket | None = None
        self._is_shaking = False
        self._waits_for = 0  # the poll events that the handshake or a write waits for

    @property
    def events(self) -> int:
        if self._dial is not None:
            return select.POLLOUT
        if self._is_shaking:
            return self._waits_for
        return select.POLLIN | select.POLLOUT if self.machine.unsent and not self._waits_for else select.POLLIN

    def opened(self, now_s: float) -> None:
        host = self.machine.address.host
        try:
            self._secured = self._tls.context.wrap_socket(
                self._socket, server_hostname=host, do_handshake_on_connect=False
            )
        except (OSError, ValueError) as error:
            self.machine.lost(str(error))
            return
        self._socket = self._secured
        self._is_shaking = True
        self._shake(now_s)

    def advance(self, events: int, now_s: float) -> None:
        if self._is_shaking:
            self._shake(now_s)
        else:
            super().advance(events, now_s)

    def write(self, now_s: float) -> None:
        secured = self._secured
        unsent = self.machine.unsent
        if not unsent or secured is None or self._is_shaking:
            return
        self._waits_for = 0
        while unsent:
            try:
                sent = secured.send(unsent[0])
            except ssl.SSLWantWriteError:
                break
            except ssl.SSLWantReadError:
                self._waits_for = select.POLLIN
                break
            except OSError as error:
                self._failed(self._alert() or error)
                return
            if sent >= len(unsent[0]):
                unsent.popleft()
            else:
                unsent[0] = unsent[0][sent:]
        self.machine.wrote(now_s)

    def read(self, now_s: float) -> None:
        secured = self._secured
        assert secured is not None
        pieces: list[bytes] = []
        size = 0
        error: OSError | None = None
        is_over = False
        while size < READ_BYTES or secured.pending():
            try:
                piece = secured.recv(RECORD_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError as fault:
                error = fault
                break
            if not piece:
                is_over = True
                break
            pieces.append(piece)
            size += len(piece)
        self._waits_for = 0
        if pieces:
            self.machine.receive(b"".join(pieces), now_s)
        if error is not None:
            self._failed(error)
        elif is_over:
            is_early = self.machine.phase == NEGOTIATING
            self.machine.lost(
                "right after the TLS handshake; it may require another certificate from us" if is_early else ""
            )

    def _shake(self, now_s: float) -> None:
        secured = self._secured
        assert secured is not None
        if self.machine.phase == CLOSED:
            return
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            self._waits_for = select.POLLIN
        except ssl.SSLWantWriteError:
            self._waits_for = select.POLLOUT
        except OSError as error:
            self._failed(error)
        else:
            self._is_shaking = False
            self._waits_for = 0
            super().opened(now_s)

    def _alert(self) -> ssl.SSLError | None:
        """The TLS alert of a broker that has closed the connection."""
        secured = self._secured
        if secured is None or self.machine.phase == READY:
            return None
        try:
            secured.recv(1)
        except ssl.SSLError as alert:
            return alert if "ALERT" in (alert.reason or "") else None
        except OSError:
            pass
        return None

    def _failed(self, error: OSError) -> None:
        """Close after a broken connection, or with an AuthenticationError after a fault of TLS."""
        is_tls = isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLSyscallError)
        if is_tls and self.machine.phase != READY:
            self.machine.close(AuthenticationError(f"{self.machine.address}: {explain(error)}"))
        else:
            found = "connection closed" if isinstance(error, ssl.SSLError) else reason(error)  # its errno is none
            where = " in the TLS handshake; does that port speak TLS?" if self._is_shaking else ""
            self.machine.lost(explain(error) if is_tls else found + where)


def explain(error: OSError) -> str:
    """A plain message for frequent reasons."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not valid: {error.verify_message}"
    found = getattr(error, "reason", None) or str(error)
    if found in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return "that port does not speak TLS; is it a listener without TLS?"
    if "ALERT" in found and any(word in found for word in ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE")):
        return f"the broker refuses our certificate, or requires one ({found})"
    return f"TLS failed ({found})"
