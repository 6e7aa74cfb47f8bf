"""The socket of a connection machine: connects, writes the machine's bytes, and feeds it what arrives.

Nothing here blocks. The owner polls `fileno()` for `events` and calls `advance`; after `send` on the machine it calls
`write`, which saves a round of polling when the socket has room. When the machine is closed the owner calls `close`.
`tls_line` is the same over TLS.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import os
import select
from itertools import islice
from typing import Final

from ixion.clients.core.connection import CLOSED, CONNECTING, ConnectionMachine
from ixion.clients.core.security import Security
from ixion.clients.dial import Dial, Place
from ixion.clients.faults import UnreachableError

READ_BYTES: Final = 64 * 1024  # at most in one read, unless it is the rest of a large answer
FIRST_BYTES: Final = 16 * 1024  # of the buffer, until a read fills it
PIECES: Final = 64  # buffers per system call; the system's own limit is 1,024


class Line:
    def __init__(self, machine: ConnectionMachine, places: list[Place] | None = None) -> None:
        """Begins to connect. UnreachableError, with which the machine is closed, if no attempt is possible."""
        self.machine = machine
        try:
            self._dial: Dial | None = Dial(machine.address, places)
        except UnreachableError as fault:
            machine.close(fault)
            raise
        self._socket = self._dial.socket
        self._view = memoryview(b"")  # of the read buffer

    def fileno(self) -> int:
        """May change after `advance` while the machine is CONNECTING."""
        return self._socket.fileno()

    def opened(self, now_s: float) -> None:
        """The socket is connected."""
        self.machine.connected(now_s)
        self.write(now_s)

    @property
    def events(self) -> int:
        """What to poll the socket for."""
        if self._dial is not None:
            return select.POLLOUT
        return select.POLLIN | select.POLLOUT if self.machine.unsent else select.POLLIN

    def advance(self, events: int, now_s: float) -> None:
        """Do what the socket is ready for."""
        if self._dial is not None:
            self._connect(self._dial, now_s)
            return
        if events & select.POLLOUT:
            self.write(now_s)
        if events & ~select.POLLOUT:
            self.read(now_s)
            if self.machine.unsent:
                self.write(now_s)

    def write(self, now_s: float) -> None:
        """Write as many unsent bytes as the socket takes now."""
        unsent = self.machine.unsent
        if not unsent or self._dial is not None:
            return
        while unsent:
            try:
                sent = self._socket.sendmsg(list(islice(unsent, PIECES)))
            except BlockingIOError:
                break
            except OSError as error:
                self.machine.lost(reason(error))
                return
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                unsent[0] = unsent[0][sent:]
        self.machine.wrote(now_s)

    def close(self) -> None:
        self._socket.close()

    def read(self, now_s: float) -> None:
        """Read from the socket: straight into its destination if that is known, else into a buffer that is reused.

        A new buffer for each read would cost more than the read, and a copy of a large answer half as much.
        """
        room = self.machine.room
        if room is None and not len(self._view):
            self._view = memoryview(bytearray(FIRST_BYTES))
        view = self._view if room is None else room
        try:
            size = self._socket.recv_into(view)  # the producer's step 11.20 again: the document has it twice
        except BlockingIOError:
            return
        except OSError as error:
            self.machine.lost(reason(error))
            return
        if not size:
            self.machine.lost()
        elif room is not None:
            self.machine.received(size, now_s)
        else:
            if size == len(view) < READ_BYTES:
                self._view = memoryview(bytearray(min(4 * size, READ_BYTES)))
            self.machine.receive_from(view[:size], now_s)

    def _connect(self, dial: Dial, now_s: float) -> None:
        if self.machine.phase == CLOSED:
            return
        assert self.machine.phase == CONNECTING
        try:
            is_connected = dial.advance()
        except UnreachableError as fault:
            self.machine.close(fault)
            return
        self._socket = dial.socket
        if is_connected:
            self._dial = None
            self.opened(now_s)


def open_line(machine: ConnectionMachine, security: Security, places: list[Place] | None = None) -> Line:
    """Begins to connect, over TLS if the settings say so. UnreachableError as of Line."""
    if security.tls is None:
        return Line(machine, places)
    from ixion.clients.tls_line import TlsLine  # costs the import of ssl

    return TlsLine(machine, security.tls, places)


def reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
