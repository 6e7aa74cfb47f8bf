"""The sockets of a client: one line for each connection machine that it has opened."""

# This module is compiled: see setup.py.

from __future__ import annotations

from ixion.clients.core.client import Client
from ixion.clients.core.connection import ConnectionMachine
from ixion.clients.dial import Place
from ixion.clients.faults import UnreachableError
from ixion.clients.line import Line, open_line


class Lines:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.lines: list[Line] = []
        self.changes = 0  # counts lines that were opened or closed

    def open(self, machine: ConnectionMachine, places: list[Place] | None) -> Line | None:
        """None, and the machine is closed, if no address can be tried."""
        try:
            line = open_line(machine, self._client.settings.security, places)
        except UnreachableError:
            return None
        self.changes += 1
        self.lines.append(line)
        return line

    def flush(self, now_s: float) -> bool:
        """Write unsent bytes and drop closed connections. True if the client has answers to deliver."""
        stirs = False
        for line in self.lines:
            machine = line.machine
            if machine.unsent:
                line.write(now_s)
            if machine.arrivals or machine.closed:
                stirs = True
        for line in [line for line in self.lines if line.machine.closed]:
            line.close()
            self.lines.remove(line)
            self.changes += 1
        return stirs

    @property
    def is_owed(self) -> bool:
        """Whether a request is unsent or unanswered: a socket may be ready."""
        for line in self.lines:
            machine = line.machine
            if machine.in_flight or machine.unsent or not machine.ready:
                return True
        return False

    def close(self) -> None:
        for line in self.lines:
            line.close()
        self.lines.clear()
