"""Serves a metadata tree on a local port, for the brokers of this machine: `served.py` with sockets and a timer.

    server = await serve_tree(EmbeddedStore("cluster/metadata.sqlite"), port=0)
    ...
    await server.close()

Run it in its own process: a change waits for the disk, and everything else waits meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final, cast

from ixion.broker.metadata.embedded import EmbeddedStore
from ixion.broker.metadata.errors import StoreUnusableError
from ixion.broker.metadata.zookeeper.served import Connection, Keeper

logger = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
TICK_S: Final = 0.2
LATE_S: Final = 1.0  # if a tick is later than this, the process was stopped and received nothing
MOST_CONNECTIONS: Final = 1_000
GREETING_S: Final = 10.0  # a connection without a session is closed after this time
MOST_UNREAD: Final = 4 << 20  # bytes that a client has not read; above it, its connection is closed


async def serve_tree(store: EmbeddedStore, port: int) -> TreeServer:
    """The server owns the store from now on. Port 0 is any free port. `OSError` if the port is in use."""
    server = TreeServer(store)
    await server.listen(port)
    return server


class TreeServer:
    def __init__(self, store: EmbeddedStore) -> None:
        self._keeper = Keeper(store)
        self._loop = asyncio.get_running_loop()
        self._listener: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._ticked = time.monotonic()
        self._timer = self._loop.call_later(TICK_S, self._tick)

    async def listen(self, port: int) -> None:
        try:
            self._listener = await self._loop.create_server(lambda: _Link(self), HOST, port)
        except BaseException:
            self._timer.cancel()
            raise

    @property
    def port(self) -> int:
        assert self._listener is not None
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Ends all sessions, with their ephemeral nodes. Clients learn that when they reconnect to a later server."""
        self._timer.cancel()
        if self._listener is not None:
            self._listener.close()
        for link in list(self._links):
            link.abort()
        await asyncio.sleep(0)  # let the loop call `connection_lost`
        self._keeper.store.close()

    def join(self, link: _Link) -> Connection | None:
        """None if there are too many connections."""
        if len(self._links) >= MOST_CONNECTIONS:
            logger.warning("refused a connection to the tree: there are %d already", MOST_CONNECTIONS)
            return None
        self._links.add(link)
        return Connection(self._keeper, link.send, link.hang_up)

    def leave(self, link: _Link) -> None:
        self._links.discard(link)

    def _tick(self) -> None:
        now = time.monotonic()
        late = now - self._ticked > LATE_S
        self._ticked = now
        self._timer = self._loop.call_later(TICK_S, self._tick)
        try:
            if late:
                self._keeper.forgive()
            else:
                self._keeper.tick()
        except StoreUnusableError as error:
            logger.error("sessions could not be ended; retrying: %s", error)


class _Link(asyncio.Protocol):
    def __init__(self, server: TreeServer) -> None:
        self._server = server
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._greeting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connection = self._server.join(self)
        if self._connection is None:
            self._transport.abort()
        else:
            self._greeting = asyncio.get_running_loop().call_later(GREETING_S, self._not_greeted)

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.received(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's)
        self._server.leave(self)
        if self._greeting is not None:
            self._greeting.cancel()
        if self._connection is not None:
            self._connection.lost()
            self._connection = None

    def pause_writing(self) -> None:
        """The client reads more slowly than it sends requests: stop reading its requests."""
        if self._connection is not None and self._transport is not None:
            self._connection.pause()
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._connection is not None and self._transport is not None:
            self._transport.resume_reading()
            self._connection.resume()

    def send(self, data: bytes) -> None:
        assert self._transport is not None
        # Checked before writing: a single response may be larger than the limit.
        if self._transport.get_write_buffer_size() > MOST_UNREAD:
            logger.warning("closing the connection of a client of the tree that does not read")
            self._transport.abort()
            if self._connection is not None:
                self._connection.lost()
        else:
            self._transport.write(data)

    def hang_up(self) -> None:
        assert self._transport is not None
        self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _not_greeted(self) -> None:
        if self._connection is not None and not self._connection.greeted:
            self.abort()
