"""A request on its way through the broker, and how it is answered.

A handler gets one and returns

- buffers to send, size in front (`frame_response` makes them),
- `None` if the client expects no answer (Produce with acks=0),
- `LATER` if it will call `respond` or `no_response` itself: an operation that waits in a purgatory,
- an awaitable of one of these, for work that is done elsewhere (a thread, another broker).

Everything here is called on the loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ixion._native import i64
from ixion.network.memory_pool import MemoryPool
from ixion.protocol.codec.sink import Part
from ixion.wire.answer import LATER, Later
from ixion.wire.server import RequestFrame

if TYPE_CHECKING:
    from ixion.network.connection import Connection


class Request:
    def __init__(self, connection: Connection, frame: RequestFrame, received_ns: i64, pool: MemoryPool) -> None:
        self.connection = connection
        self.frame = frame
        self.received_ns: i64 = received_ns
        self.parts: list[Part] | None = None  # the answer, once there is one
        self.answered = False
        self._pool = pool
        self._reserved: i64 = frame.size

    @property
    def listener(self) -> str:
        return self.connection.listener

    @property
    def address(self) -> str:
        """The client's, without the port."""
        return self.connection.address

    def respond(self, parts: list[Part]) -> None:
        """Send the answer. Dropped if the client has gone meanwhile; a second one is an error."""
        self._settle(parts)

    def no_response(self) -> None:
        """The client expects nothing; its next request may come."""
        self._settle(None)

    def release(self) -> None:
        """Give the memory of the request back early: who has decoded it and waits for something needs no bytes."""
        reserved = self._reserved
        if reserved:
            self._reserved = 0
            self.frame.drop()
            self._pool.release(reserved)

    def _settle(self, parts: list[Part] | None) -> None:
        if self.answered:
            raise RuntimeError(f"a request of API key {self.frame.api_key} was answered twice")
        self.answered = True
        self.parts = parts
        self.connection.processor.send_response(self)


__all__ = ["LATER", "Answer", "Handler", "Later", "Request"]

Answer = list[Part] | Later | None
Handler = Callable[[Request], "Answer | Awaitable[Answer]"]
