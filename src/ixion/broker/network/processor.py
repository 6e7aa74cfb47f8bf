"""Owns a share of the connections: registers new ones, sends responses.

New connections wait in a short queue until the loop has registered them; if it is full, the acceptor tries the next
processor. Responses go through a queue too, which is nearly always empty: it keeps the stack flat if sending one
response produces another.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import Any, Final, NamedTuple, cast

from ixion._native import i64
from ixion.broker.network.buffered import Buffered
from ixion.broker.network.connection import Connection
from ixion.broker.network.listener import Listener
from ixion.broker.network.plane import Plane
from ixion.broker.network.request import Request

NEW_CONNECTIONS: Final = 20  # connections that may wait for registration, as in Kafka
HANDSHAKE_S: Final = 10.0  # for a TLS handshake
LAST_NUMBER: Final = 2**31 - 1


class AcceptedConnection(NamedTuple):
    """A connection that is accepted and counted."""

    socket: socket.socket
    listener: Listener
    address: str


class Processor:
    def __init__(self, index: int, plane: Plane) -> None:
        self.index = index
        self.plane = plane
        self.connections: dict[int, Connection] = {}
        self.stopped = False
        self._accepted: deque[AcceptedConnection] = deque()
        self._registering: set[asyncio.Task[None]] = set()
        self.handshaking: set[asyncio.Task[None]] = set()  # TLS connections that are not registered yet
        self._room: asyncio.Event = asyncio.Event()
        self._responses: deque[Request] = deque()
        self._sending = False
        self._started = False
        self._next_number: i64 = 0

    @property
    def queued_responses(self) -> int:
        return len(self._responses)

    def offer(self, accepted: AcceptedConnection) -> bool:
        """Queue the connection; False if the queue is full."""
        if len(self._accepted) + len(self._registering) >= NEW_CONNECTIONS:
            return False
        self._accepted.append(accepted)
        self._take_in()
        return True

    async def put(self, accepted: AcceptedConnection) -> None:
        """Queue the connection as soon as there is room."""
        while not self.offer(accepted):
            self._room.clear()
            await self._room.wait()

    def start(self) -> None:
        self._started = True
        self._take_in()

    def stop(self) -> None:
        """Accept no more connections; close each one after the response to its request in flight."""
        self._started = False
        self.stopped = True
        for accepted in self._accepted:
            self._reject(accepted, "shutdown")
        self._accepted.clear()
        for task in self.handshaking:
            task.cancel()
        for connection in list(self.connections.values()):
            connection.finish()

    def send_response(self, request: Request) -> None:
        self._responses.append(request)
        if self._sending:
            return
        self._sending = True
        try:
            while self._responses:
                answered = self._responses.popleft()
                answered.connection.send(answered)
        finally:
            self._sending = False

    def register(self, connection: Connection) -> None:
        self.connections[connection.number] = connection
        if self.stopped:  # while the loop was registering it
            connection.finish()

    def unregister(self, connection: Connection, reason: str) -> None:
        shared = self.plane.shared
        if self.connections.pop(connection.number, None) is not None:
            shared.counters.count_closed(reason)
            shared.quotas.give_back(connection.listener, connection.address)

    def _take_in(self) -> None:
        while self._started and self._accepted:
            accepted = self._accepted.popleft()
            task = self.plane.shared.loop.create_task(self._register(accepted))
            # A client may delay its TLS handshake, so handshakes do not count as waiting for registration.
            waiting = self._registering if accepted.listener.tls is None else self.handshaking
            waiting.add(task)
            task.add_done_callback(self._registered)

    def _registered(self, task: asyncio.Task[None]) -> None:
        self._registering.discard(task)
        self.handshaking.discard(task)
        self._room.set()

    async def _register(self, accepted: AcceptedConnection) -> None:
        listener = accepted.listener
        number = self._next_number
        while number in self.connections:
            number = (number + 1) & LAST_NUMBER
        self._next_number = (number + 1) & LAST_NUMBER
        gate = listener.gate() if listener.gate is not None else None
        connection = Connection(
            self, number, listener.name, accepted.address, gate, listener.first_max_bytes, listener.principal_rules
        )
        loop = self.plane.shared.loop
        # uvloop calls a protocol's methods by name.
        protocol = Buffered(connection) if isinstance(loop, asyncio.BaseEventLoop) else cast(Any, connection)
        try:
            if listener.tls is None:
                await loop.connect_accepted_socket(lambda: protocol, accepted.socket)
            else:
                from ixion.broker.security.alerts import send_alerts_on  # only a broker with TLS needs it

                send_alerts_on(accepted.socket)
                await loop.connect_accepted_socket(
                    lambda: protocol, accepted.socket, ssl=listener.tls(), ssl_handshake_timeout=HANDSHAKE_S
                )
        except OSError as error:  # closed during the handshake; SSLError is an OSError
            if self.connections.get(number) is not connection:
                if listener.tls is not None:
                    self.plane.shared.strangers.met(accepted.address, listener.name, handshake_fault(error))
                self._reject(accepted, "peer" if listener.tls is None else "handshake")
        except asyncio.CancelledError:  # the server stops, and waits until every connection is uncounted
            if self.connections.get(number) is not connection:
                self._reject(accepted, "shutdown")
            raise

    def _reject(self, accepted: AcceptedConnection, reason: str) -> None:
        accepted.socket.close()
        self.plane.shared.counters.count_closed(reason)
        self.plane.shared.quotas.give_back(accepted.listener.name, accepted.address)


def handshake_fault(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error.strerror or str(error) or "nothing for too long"
    return f"no TLS handshake that we could finish ({reason})"
