"""A request as the pages see it: the path in decoded segments, the query, the headers that count."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from ixion.broker.web.response import RefusedError

FIELDS_MAX: Final = 32  # of a query; no page of ours has ten


class HttpRequest(NamedTuple):
    method: str
    path: str  # as it was sent, without the query
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    at: Mapping[str, str] = MappingProxyType({})  # the named segments of its route
    address: str = ""  # of the client, without the port
    body: bytes = b""  # of a POST

    @property
    def wants_html(self) -> bool:
        """Whether a browser asks. Scripts and probes get JSON and plain text."""
        return "text/html" in self.headers.get("accept", "")

    @property
    def segments(self) -> list[str]:
        """A segment is decoded after the path is split: a group may have a slash in its name."""
        return [decoded(each) for each in self.path.split("/")[1:]]

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number of the query; RefusedError if it is none, or out of bounds."""
        text = self.query.get(name, "")
        if not text:
            return default
        sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
        if not digits.isascii() or not digits.isdigit() or len(digits) > 19:
            raise RefusedError(400, f"{name} is a whole number, not {text[:40]!r}")
        found = sign * int(digits)
        if not least <= found <= most:
            raise RefusedError(400, f"{name} is {found}; it must be from {least} to {most}")
        return found


def read_target(target: bytes) -> tuple[str, dict[str, str]]:
    """Path and query. RefusedError if the target is a whole URL of elsewhere, or has bytes that no browser sends."""
    text = target.decode("ascii", "replace")
    path, _, query = text.partition("?")
    if not path.startswith("/") or "\ufffd" in path:
        raise RefusedError(400, "a request names a path, such as /topics")
    try:
        return path, dict(parse_qsl(query, keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict"))
    except ValueError:
        raise RefusedError(400, "the query cannot be read") from None


def decoded(segment: str) -> str:
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise RefusedError(400, "the path is not UTF-8") from None
