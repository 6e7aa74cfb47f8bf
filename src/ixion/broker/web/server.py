"""The HTTP port. It is bound before the broker starts, so that a port in use is noticed early."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Collection

    from ixion.broker.web.http import Connections, HttpConnection
    from ixion.broker.web.response import Ask

HANDSHAKES_MAX: Final = 64  # of TLS at a time; the oldest makes room
HANDSHAKE_S: Final = 10
RETRY_S: Final = 0.1  # wait if the system has no more file descriptors


class WebServer:
    def __init__(self, host: str, port: int) -> None:
        """OSError if the port cannot be opened."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=128)
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None
        self._connections: Connections | None = None
        self._tls: Callable[[], ssl.SSLContext] | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self.host = host
        self.port = int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        kind = "https" if self.is_secure else "http"
        return f"{kind}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def only_here(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_secure(self) -> bool:
        return self._tls is not None

    def secure(self, tls: Callable[[], ssl.SSLContext]) -> None:
        """Use TLS; the context is asked for with each connection. Called before the start."""
        self._tls = tls

    async def start(self, make_pages: Callable[[], Ask], names: Collection[str] = ()) -> None:
        """The pages are made, and the code for them is imported, with the first connection. `names`: see `Guard`."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        loop.add_reader(self._socket, self._first_connection, make_pages, names)

    def _first_connection(self, make_pages: Callable[[], Ask], names: Collection[str]) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket)
        self._starting = loop.create_task(self._begin(make_pages, names))

    async def _begin(self, make_pages: Callable[[], Ask], names: Collection[str]) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(import_code)  # some 30 ms, which no Kafka client should wait for
        from ixion.broker.web.guard import Guard
        from ixion.broker.web.http import Connections, HttpConnection

        connections = self._connections = Connections(
            make_pages(), Guard({self.host, socket.gethostname(), *names}, only_here=self.only_here)
        )

        def connect() -> HttpConnection:
            return HttpConnection(connections)

        if self._tls is None:
            self._server = await loop.create_server(connect, sock=self._socket)
        else:
            self._accepting = loop.create_task(self._accept(connect, self._tls))
        self._starting = None

    async def _accept(self, connect: Callable[[], HttpConnection], tls: Callable[[], ssl.SSLContext]) -> None:
        """As `create_server`, with a bound on the connections whose handshake is not finished."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(RETRY_S)
                continue
            if len(self._handshakes) >= HANDSHAKES_MAX:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            task = loop.create_task(handshake(client, connect, tls))
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    def close(self) -> None:
        for task in (self._starting, self._accepting, *self._handshakes):
            if task is not None:
                task.cancel()
        if self._server is not None:
            self._server.close()
        elif self._accepting is None and self._socket.fileno() >= 0:
            try:
                asyncio.get_running_loop().remove_reader(self._socket)
            except RuntimeError:
                pass  # it was never started
        self._socket.close()
        if self._connections is not None:
            self._connections.close()


async def handshake(
    client: socket.socket, connect: Callable[[], HttpConnection], tls: Callable[[], ssl.SSLContext]
) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(
            connect, client, ssl=tls(), ssl_handshake_timeout=HANDSHAKE_S
        )
    except OSError:
        pass  # no TLS, or too slow: its transport is closed


def import_code() -> None:
    import ixion.broker.web.http
    import ixion.broker.web.pages  # noqa: F401
