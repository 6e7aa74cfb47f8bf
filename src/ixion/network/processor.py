"""Owns a share of the connections: takes new ones in, sends the answers out.

New connections wait in a short queue of their own until the loop has registered them; an acceptor that finds it full
tries the next processor. Answers go through a queue too, which is nearly always empty: it keeps an answer that is
given while another is being sent from growing the stack.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, cast

from ixion._native import i64
from ixion.network.buffered import Buffered
from ixion.network.connection import Connection
from ixion.network.plane import Plane
from ixion.network.request import Request

NEW_CONNECTIONS: Final = 20  # that may wait to be registered, as in Kafka
LAST_NUMBER: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A connection that was accepted and counted."""

    socket: socket.socket
    listener: str
    address: str


class Processor:
    def __init__(self, index: int, plane: Plane) -> None:
        self.index = index
        self.plane = plane
        self.connections: dict[int, Connection] = {}
        self.stopped = False
        self._arrivals: deque[Arrival] = deque()
        self._registering: set[asyncio.Task[None]] = set()
        self._room: asyncio.Event = asyncio.Event()
        self._responses: deque[Request] = deque()
        self._sending = False
        self._started = False
        self._next_number: i64 = 0

    @property
    def queued_responses(self) -> int:
        return len(self._responses)

    def offer(self, arrival: Arrival) -> bool:
        """Take it in; False if as many as may wait do."""
        if len(self._arrivals) + len(self._registering) >= NEW_CONNECTIONS:
            return False
        self._arrivals.append(arrival)
        self._take_in()
        return True

    async def put(self, arrival: Arrival) -> None:
        """Take it in as soon as there is room."""
        while not self.offer(arrival):
            self._room.clear()
            await self._room.wait()

    def start(self) -> None:
        self._started = True
        self._take_in()

    def stop(self) -> None:
        """No more connections; those there are end, each after the answer it is owed."""
        self._started = False
        self.stopped = True
        for arrival in self._arrivals:
            self._reject(arrival, "shutdown")
        self._arrivals.clear()
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
        if self.stopped:  # while the loop was still at it
            connection.finish()

    def unregister(self, connection: Connection, reason: str) -> None:
        shared = self.plane.shared
        if self.connections.pop(connection.number, None) is not None:
            shared.counters.count_closed(reason)
            shared.quotas.give_back(connection.listener, connection.address)

    def _take_in(self) -> None:
        while self._started and self._arrivals:
            task = self.plane.shared.loop.create_task(self._register(self._arrivals.popleft()))
            self._registering.add(task)
            task.add_done_callback(self._registered)

    def _registered(self, task: asyncio.Task[None]) -> None:
        self._registering.discard(task)
        self._room.set()

    async def _register(self, arrival: Arrival) -> None:
        number = self._next_number
        while number in self.connections:
            number = (number + 1) & LAST_NUMBER
        self._next_number = (number + 1) & LAST_NUMBER
        connection = Connection(self, number, arrival.listener, arrival.address)
        loop = self.plane.shared.loop
        # uvloop calls a protocol's methods by name.
        protocol = Buffered(connection) if isinstance(loop, asyncio.BaseEventLoop) else cast(Any, connection)
        try:
            await loop.connect_accepted_socket(lambda: protocol, arrival.socket)
        except OSError:  # it ended before it began
            if self.connections.get(number) is not connection:
                self._reject(arrival, "peer")

    def _reject(self, arrival: Arrival, reason: str) -> None:
        arrival.socket.close()
        self.plane.shared.counters.count_closed(reason)
        self.plane.shared.quotas.give_back(arrival.listener, arrival.address)
