"""A request on its way through the broker, and how to respond to it.

A handler gets one and returns

- buffers to send, with the size in front (`frame_response` makes them),
- `None` if the client expects no response (Produce with acks=0),
- `LATER` if an operation in a purgatory will call `respond` or `no_response`,
- an awaitable of one of these, for work that is done elsewhere (a thread, another broker).

Everything here is called on the loop.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ixion._native import i64
from ixion.broker.network.memory_pool import LARGE, MemoryPool
from ixion.language.protocol.codec.sink import Part
from ixion.language.wire.answer import LATER, Answer, Later
from ixion.language.wire.server import RequestFrame
from ixion.timer.lane import Lane

if TYPE_CHECKING:
    from ixion.broker.network.connection import Connection


class Request:
    def __init__(
        self, connection: Connection, frame: RequestFrame, received_ns: i64, pool: MemoryPool, shared: bool
    ) -> None:
        """`shared`: the chunk with this frame has more bytes, and the connection counts it."""
        self.connection = connection
        self.frame = frame
        self.received_ns: i64 = received_ns
        self.parts: list[Part] | None = None  # the response, once there is one
        self.answered = False
        self._pool = pool
        self._counted: i64 = frame.size if shared else len(frame.data)
        self._large = frame.size > LARGE
        self._when_gone: Callable[[], None] | None = None
        self._released = False
        pool.take(self._counted, self._large)

    @property
    def waits(self) -> bool:
        """Whether the response depends on other clients; then the operation is cancelled if the client closes."""
        return self._when_gone is not None

    @property
    def lane(self) -> Lane:
        """The lane for long work: decoding or encoding very many elements."""
        return self.connection.processor.plane.shared.lane

    def grow(self, size: i64) -> None:
        """Count `size` more bytes until the request is released: the decoded request takes memory too."""
        if not self._released:
            self._counted += size
            self._pool.take(size, self._large)

    @property
    def when_gone(self) -> Callable[[], None] | None:
        """What is called if the client closes the connection: of a request that waits, it leads to the operation."""
        return self._when_gone

    def on_gone(self, cancel: Callable[[], None] | None) -> None:
        """Call `cancel` if the client closes the connection before the response. None: forget it."""
        self._when_gone = cancel
        if cancel is not None and self.connection.closing:
            self.lost()

    @property
    def listener(self) -> str:
        return self.connection.listener

    @property
    def address(self) -> str:
        """The client's address, without the port."""
        return self.connection.address

    def respond(self, parts: list[Part]) -> None:
        """Send the response. It is dropped if the connection is closed; a second one is an error."""
        self._settle(parts)

    def no_response(self) -> None:
        """The client expects no response; its next request may come."""
        self._settle(None)

    def release(self) -> None:
        """Return the bytes: a decoded request no longer needs them. A handler that waits for other clients must."""
        if not self._released:
            self._released = True
            self.frame.drop()
            self._pool.release(self._counted, self._large)
            self._pool.leave(self.connection)

    def fail(self, error: Exception) -> None:
        """There will be no response: close the connection."""
        self.connection.processor.plane.channel.failed(self, error)

    def lost(self) -> None:
        """The connection was closed before the response."""
        cancel = self._when_gone
        if cancel is not None:
            self._when_gone = None
            self.release()
            cancel()

    def _settle(self, parts: list[Part] | None) -> None:
        if self.answered:
            raise RuntimeError(f"a request of API key {self.frame.api_key} was answered twice")
        self.answered = True
        self._when_gone = None
        self.parts = parts
        self.connection.processor.send_response(self)


__all__ = ["LATER", "Answer", "Handler", "Later", "Request"]

Handler = Callable[[Request], "Answer | Awaitable[Answer]"]
