"""The part of HTTP/1.1 that read-only pages need: GET and HEAD, one after the other on a connection.

These are bounded: the head of a request, the number of connections, the time a client may be idle or take to read its
response. An invalid request gets an error status, and the connection is closed. A body is never read.

Written by hand: h11 takes 20 to 30 ms to import and 1.3 MB, starlette with uvicorn 200 ms and 14 MB, this module 4 ms
and 0.5 MB. If we ever read bodies, we should use h11.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, cast

from ixion.web.response import PHRASES, Page, Pages, Response, plain

HEAD_MAX: Final = 8192  # bytes
CONNECTIONS_MAX: Final = 32
PATIENCE_S: Final = 30  # for the next request, and for the client to read the response
END: Final = b"\r\n\r\n"
METHODS: Final = (b"GET", b"HEAD")

logger = logging.getLogger(__name__)


class HttpConnection(asyncio.Protocol):
    def __init__(self, pages: Pages, connections: set[HttpConnection]) -> None:
        self._pages = pages
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._task: asyncio.Task[None] | None = None  # responds to a request
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        crowded = len(self._connections) >= CONNECTIONS_MAX
        self._connections.add(self)
        self._be_patient()
        if crowded:
            self._send(plain(503, "too many connections"), last=True)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > HEAD_MAX and END not in self._received[:HEAD_MAX]:
            self._send(plain(431), last=True)
        elif self._task is None:
            self._read_next()
        elif self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        self._connections.discard(self)
        self._transport = None
        if self._deadline is not None:
            self._deadline.cancel()
        if self._task is not None:
            self._task.cancel()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _be_patient(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(PATIENCE_S, self.abort)

    def _read_next(self) -> None:
        if self._transport is None or self._transport.is_closing() or END not in self._received:
            return
        head, _, self._received = self._received.partition(END)
        self._be_patient()
        first, *lines = head.split(b"\r\n")
        words = first.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            self._send(plain(400), last=True)
            return
        method, target, version = words
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        if has_body or method not in METHODS:
            self._send(plain(413 if method in METHODS else 405), last=True)
            return
        page = self._pages.get(target.partition(b"?")[0].decode("latin-1"))
        last = headers.get(b"connection", b"").lower() == b"close" or version == b"HTTP/1.0"
        self._task = self._loop.create_task(self._answer(page, method == b"HEAD", last))

    async def _answer(self, page: Page | None, bare: bool, last: bool) -> None:
        try:
            response = plain(404) if page is None else await page()
        except Exception:
            logger.exception("an HTTP page failed")
            response = plain(500)
        self._task = None
        self._send(response, last=last, bare=bare)
        if self._transport is not None and not last:
            self._transport.resume_reading()
            self._read_next()

    def _send(self, response: Response, *, last: bool, bare: bool = False) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        lines = [
            f"HTTP/1.1 {response.status} {PHRASES[response.status]}",
            f"Content-Type: {response.kind}",
            f"Content-Length: {len(response.body)}",
            "Cache-Control: no-store",
        ]
        if response.status == 405:
            lines.append("Allow: GET, HEAD")
        if last:
            lines.append("Connection: close")
        transport.write("\r\n".join([*lines, "", ""]).encode() + (b"" if bare else response.body))
        if last:
            transport.close()
