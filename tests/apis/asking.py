"""One question and its answer over a socket, for any message table in any version.

Use it in the test of an API key. Where several requests are in flight, use `raw`.
"""

from __future__ import annotations

import socket
import struct
from typing import Self, TypeVar

from ixion.language.protocol.envelope import decode_response, frame_request
from ixion.language.protocol.headers import RequestHeader
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

T = TypeVar("T", bound=Struct)

_KEYS = {f"{key.title}Request": key for key in ApiKey}


class Asking:
    """A connection. `ask(request, Answer)` is the answer to a request, in the newest version unless told."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._next = 0

    def ask(self, request: Struct, answer: type[T], version: int = -1) -> T:
        key = _KEYS[type(request).__name__]
        version = key.newest if version < 0 else version
        self._next += 1
        header = RequestHeader(api_key=int(key), api_version=version, correlation_id=self._next, client_id="asking")
        self._socket.sendall(b"".join(bytes(part) for part in frame_request(header, request)))
        (size,) = struct.unpack(">i", self._take(4))
        frame = self._take(size)
        assert struct.unpack(">i", frame[:4]) == (self._next,)
        _, body = decode_response(int(key), version, frame)
        assert isinstance(body, answer)
        return body

    def _take(self, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            piece = self._socket.recv(size - len(taken))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            taken += piece
        return taken

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def versions(key: ApiKey) -> range:
    return range(key.oldest, key.newest + 1)
