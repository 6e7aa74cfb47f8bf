"""An HTTP response, and a page that returns one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

TEXT: Final = "text/plain; charset=utf-8"
# Not from the module `http`: importing it takes 3 ms.
PHRASES: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Response(NamedTuple):
    body: bytes
    status: int = 200  # one of PHRASES
    kind: str = TEXT


Page = Callable[[], Awaitable[Response]]
Pages = Mapping[str, Page]  # by path


def plain(status: int, text: str = "") -> Response:
    return Response((text or PHRASES[status]).encode() + b"\n", status)
