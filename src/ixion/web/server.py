"""The HTTP port. It is bound before the broker starts, so that a port in use is noticed early."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ixion.web.http import HttpConnection
    from ixion.web.response import Pages


class WebServer:
    def __init__(self, host: str, port: int) -> None:
        """OSError if the port cannot be opened."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=64)
        self._server: asyncio.Server | None = None
        self._connections: set[HttpConnection] = set()
        self.host = host
        self.port = int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    async def start(self, make_pages: Callable[[], Pages]) -> None:
        """The pages are made, and the code for them is imported, with the first connection."""
        pages: Pages | None = None

        def connect() -> HttpConnection:
            nonlocal pages
            from ixion.web.http import HttpConnection

            if pages is None:
                pages = make_pages()
            return HttpConnection(pages, self._connections)

        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(connect, sock=self._socket)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.close()
        for connection in list(self._connections):
            connection.abort()
