"""Errors of a stream of frames, and what protocol the bytes look like instead.

The first four bytes of other protocols, read as a size, are absurd: `GET ` is 1 195 725 856 bytes. The log should say
"an HTTP request" and not that number.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

PEEK: Final = 16  # bytes of a refused frame, its size included, that go into the message


class Looks(Enum):
    """What a bad stream looks like; the value is its name in the counters."""

    HTTP = "http"
    TLS = "tls"
    SSH = "ssh"
    NEGATIVE = "negative_size"
    EMPTY = "empty_frame"
    OVERSIZE = "oversize"
    GARBAGE = "garbage"  # a frame that is not a request
    ORDER = "order"  # a response to no pending request


_HTTP: Final = (b"GET ", b"PUT ", b"POST", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI ", b"HTTP")


class WireError(Exception):
    """The stream cannot be read further: close the connection. `looks` is the kind; the message shows the bytes."""

    def __init__(self, looks: Looks, message: str) -> None:
        super().__init__(message)
        self.looks: Final = looks


def bad_size(size: int, limit: int, peek: bytes, shown: bool) -> WireError:
    """The error of a frame that claims `size` bytes. Only a peer that has sent no valid request yet may be speaking
    another protocol."""
    if not shown:
        if peek[:4] in _HTTP:
            return WireError(Looks.HTTP, f"an HTTP message, not Kafka: {peek!r}")
        if peek[:1] == b"\x16" and peek[1:2] == b"\x03":
            return WireError(Looks.TLS, "a TLS handshake on a plaintext listener")
        if peek[:4] == b"SSH-":
            return WireError(Looks.SSH, f"an SSH banner, not Kafka: {peek!r}")
    if size < 0:
        return WireError(Looks.NEGATIVE, f"a frame of {size} bytes, starting with {peek!r}")
    if size == 0:
        return WireError(Looks.EMPTY, "a frame of 0 bytes")
    return WireError(Looks.OVERSIZE, f"a frame of {size} bytes, where {limit} are allowed")
