"""HTTP requests that carry a secret: a redirect to another place does not get it.

`urllib` repeats all headers wherever a redirect leads. A server, or someone in between who answers for it, could
collect tokens so.
"""

from __future__ import annotations

import urllib.request
from email.message import Message
from http.client import HTTPResponse
from typing import IO, Final, cast
from urllib.parse import urlsplit

PORTS: Final = {"http": 80, "https": 443}


class CarefulRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        made = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if made is not None and origin_of(made.full_url) != origin_of(req.full_url):
            made.remove_header("Authorization")
        return made


def origin_of(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or PORTS.get(parts.scheme, 0)


def open_url(request: urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """As `urlopen`; secrets stay with the server that they are for."""
    return cast(HTTPResponse, urllib.request.build_opener(CarefulRedirects).open(request, timeout=timeout_s))
