"""A `SocketServer` on the running loop, with a handler of the test's choice and a client of a few lines.

Use it for everything below the handlers: order, limits, memory, slow clients. Each test runs on uvloop and on asyncio.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ixion.broker.network import Answer, Handler, Listener, NetworkLimits, Request, SocketServer
from ixion.timer import LoopTimer, ManualClock

PLAIN = Listener(name="PLAINTEXT", port=0)


def loops() -> list[Any]:
    import uvloop

    return [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(uvloop.new_event_loop, id="uvloop")]


def on_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a coroutine as a test, once on asyncio's own loop and once on uvloop."""

    def run(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(asyncio.wait_for(test(), 20))

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return pytest.mark.parametrize("new_loop", loops())(run)


def request_bytes(correlation_id: int, payload: bytes = b"") -> bytes:
    """An ApiVersions version 0 frame with a client id; what follows is for the handler of the test."""
    body = struct.pack(">hhih", 18, 0, correlation_id, 2) + b"me" + payload
    return struct.pack(">i", len(body)) + body


def echo(request: Request) -> Answer:
    """Correlation id and payload."""
    frame = request.frame
    body = struct.pack(">i", frame.correlation_id) + frame.data[frame.start + 12 : frame.end]
    return [struct.pack(">i", len(body)) + body]


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, bytes]:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        body = await self.reader.readexactly(size)
        return struct.unpack(">i", body[:4])[0], body[4:]

    async def ask(self, correlation_id: int, payload: bytes = b"") -> bytes:
        self.send(request_bytes(correlation_id, payload))
        got, body = await self.answer()
        assert got == correlation_id
        return body

    async def closed(self) -> bool:
        """Whether the server ends the connection; waits until it does."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self) -> None:
        self.writer.transport.abort()


class Running:
    def __init__(self, server: SocketServer, clock: ManualClock, timer: LoopTimer) -> None:
        self.server = server
        self.clock = clock
        self.timer = timer
        self.clients: list[Client] = []

    async def connect(self, listener: str = "PLAINTEXT", **options: Any) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.server.port(listener), **options))
        self.clients.append(client)
        return client

    def change_limits(self, **changes: Any) -> None:
        self.server.set_limits(self.server.limits._replace(**changes))

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0)

    def count(self, listener: str = "PLAINTEXT") -> int:
        return self.server.snapshot().connections[listener]

    def closed(self, reason: str) -> int:
        return self.server.snapshot().closed.get(reason, 0)


@asynccontextmanager
async def running(
    handle: Handler = echo, listeners: tuple[Listener, ...] = (PLAIN,), start: bool = True, **options: Any
) -> AsyncIterator[Running]:
    clock = ManualClock(1000)
    timer = LoopTimer(clock=clock)
    limits = {key: options.pop(key) for key in list(options) if key in NetworkLimits._fields}
    server = SocketServer(listeners, handle, timer=timer, clock=clock, limits=NetworkLimits(**limits), **options)
    server.start_acceptors()
    if start:
        server.start_processors()
    run = Running(server, clock, timer)
    try:
        yield run
    finally:
        for client in run.clients:
            client.close()
        stopping = asyncio.ensure_future(server.stop(drain_ms=0))
        while not stopping.done():
            clock.advance(1)
            await asyncio.sleep(0)
        await stopping
        snapshot = server.snapshot()
        assert snapshot.pool_used == 0, "memory that nobody gave back"
        assert snapshot.unsent_bytes == 0
        assert sum(snapshot.connections.values()) == 0
        assert snapshot.accepted == sum(snapshot.closed.values())
        timer.shutdown()
