"""The HTTP port. It is bound before the broker starts, so that a port in use is noticed early."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ixion.broker.web.http import Connections, HttpConnection
    from ixion.broker.web.response import Ask


class WebServer:
    def __init__(self, host: str, port: int) -> None:
        """OSError if the port cannot be opened."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=128)
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None
        self._connections: Connections | None = None
        self.host = host
        self.port = int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def only_here(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

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

        self._server = await loop.create_server(connect, sock=self._socket)
        self._starting = None

    def close(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        if self._server is not None:
            self._server.close()
        elif self._socket.fileno() >= 0:
            try:
                asyncio.get_running_loop().remove_reader(self._socket)
            except RuntimeError:
                pass  # it was never started
        self._socket.close()
        if self._connections is not None:
            self._connections.close()


def import_code() -> None:
    import ixion.broker.web.http
    import ixion.broker.web.pages  # noqa: F401
