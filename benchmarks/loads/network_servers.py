"""Two echo servers with Kafka's framing: all stages of `ixion.broker.network`, and an asyncio Protocol as the floor.

Both answer a request with its correlation id and its payload, on uvloop, each in a process of its own. Neither stays
awake between requests, which is what the stages do otherwise: processor time is what is compared.
"""

from __future__ import annotations

import asyncio
import struct
import time
from multiprocessing.connection import Connection as Pipe
from typing import cast

import uvloop

from benchmarks.framework.process import resident_bytes
from ixion.broker.network import Answer, Listener, NetworkLimits, Request, SocketServer
from ixion.timer import LoopTimer

HEADER = 12  # key, version, correlation id, a client id of two letters


def echo(request: Request) -> Answer:
    frame = request.frame
    body = frame.data[frame.start + HEADER : frame.end]
    return [struct.pack(">ii", len(body) + 4, frame.correlation_id) + body]


class Bare(asyncio.Protocol):
    """The least one can do: cut frames, answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        data = self.buffer + data if self.buffer else data
        at = 0
        while len(data) - at >= 4:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            body = data[at + 4 + HEADER : end]
            (correlation_id,) = struct.unpack_from(">i", data, at + 8)
            self.transport.write(struct.pack(">ii", len(body) + 4, correlation_id) + body)
            at = end
        self.buffer = data[at:]


async def open_port(kind: str) -> tuple[int, object]:
    """The port, and the server, which must be kept alive."""
    if kind == "bare":
        server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0, backlog=1024)
        return server.sockets[0].getsockname()[1], server
    ours = SocketServer(
        [Listener(name="PLAINTEXT", port=0)], echo, timer=LoopTimer(), limits=NetworkLimits(busy_poll_us=0)
    )
    ours.start_acceptors()
    ours.start_processors()
    return ours.port("PLAINTEXT"), ours


def serve(kind: str, pipe: Pipe) -> None:
    """Says its port; then processor time and memory whenever it is sent anything; ends when the pipe does."""

    async def run() -> None:
        port, server = await open_port(kind)
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def report() -> None:
            try:
                pipe.recv()
            except EOFError:
                over.set_result(server)
                return
            pipe.send((time.process_time(), resident_bytes()))

        pipe.send(port)
        loop.add_reader(pipe.fileno(), report)
        await over
        loop.remove_reader(pipe.fileno())

    uvloop.run(run())
