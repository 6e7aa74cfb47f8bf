"""A tree of ours behind TLS, or a plain proxy, on a loop in a thread of its own. It can be frozen, and cut."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from tests.metadata.engines import ServedTree
from tests.security.certificates import Authority


def server_context(own: Path, authority: Authority | None = None) -> ssl.SSLContext:
    """With an authority it wants certificates of clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    if authority is not None:
        context.load_verify_locations(authority.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class TlsTree:
    """Without a context it does not use TLS."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.tree = ServedTree()
        self._context = context
        self._frozen = False
        self._transports: list[Any] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener = self.tree.run(self._listen())
        self.connect = f"127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._context)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._tasks.add(task)
        self._transports.append(writer.transport)
        inner_reader, inner_writer = await asyncio.open_connection(*self.tree.connect.split(":"))
        self._transports.append(inner_writer.transport)
        try:
            ends = [asyncio.ensure_future(pump(*pair)) for pair in ((reader, inner_writer), (inner_reader, writer))]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._frozen:
                await asyncio.Event().wait()
        finally:
            for end in ends:
                end.cancel()
            writer.transport.abort()
            inner_writer.transport.abort()
            self._tasks.discard(task)

    def freeze(self) -> None:
        """Read no more from clients, nor end their connections: it does not see when they say goodbye."""

        async def work() -> None:
            self._frozen = True
            for transport in self._transports:
                with suppress(RuntimeError):
                    transport.pause_reading()

        self.tree.run(work())

    def cut(self) -> None:
        """End all connections, without a goodbye."""

        async def work() -> None:
            for transport in self._transports:
                transport.abort()
            self._transports.clear()

        self.tree.run(work())

    def close(self) -> None:
        async def work() -> None:
            self._listener.close()
            for transport in self._transports:
                transport.abort()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)

        self.tree.run(work())
        self.tree.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(1 << 16):
            writer.write(data)
