"""HTTP responses: whole ones, streams, and refusals; and a page, which returns one of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from ixion.broker.web.request import HttpRequest

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"
HTML: Final = "text/html; charset=utf-8"
EVENTS: Final = "text/event-stream"
# Not from the module `http`: importing it takes 3 ms.
PHRASES: Final = {
    200: "OK",
    202: "Accepted",
    303: "See Other",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    421: "Misdirected Request",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


class Response(NamedTuple):
    body: bytes
    status: int = 200  # one of PHRASES
    kind: str = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    keep: bool = False  # browsers may keep it for good, because its name has its hash


class Outlet(Protocol):
    """Where a stream goes."""

    async def send(self, data: bytes) -> None:
        """Waits until the client reads: a stream holds no more than one piece that is not sent."""


class Stream(NamedTuple):
    """A response without an end: `feed` sends until the client goes, which cancels it."""

    feed: Callable[[Outlet], Awaitable[None]]
    kind: str = EVENTS


class RefusedError(Exception):
    """Ends a page with a status and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


Answer = Response | Stream
Page = Callable[["HttpRequest"], Awaitable[Answer]]
Ask = Callable[["HttpRequest"], Awaitable[Answer]]  # all pages: finds the one of a request


def plain(status: int, text: str = "") -> Response:
    return Response((text or PHRASES[status]).encode() + b"\n", status)
