"""The plainest client: one connection, messages in a version of the test's choice, `send` and `answer` apart.

Use it where the order of requests and answers matters, or several are in flight. For one question and its answer,
`asking` is shorter.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire.client import ClientConnection


class Raw:
    def __init__(self, bootstrap: str, client_id: str = "raw") -> None:
        self.bootstrap = bootstrap
        host, port = bootstrap.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._connection = ClientConnection(client_id)

    def ask(self, key: ApiKey, version: int, body: Struct) -> Any:
        self.send(key, version, body)
        return self.answer()

    def send(self, key: ApiKey, version: int, body: Struct) -> None:
        _, parts = self._connection.request(int(key), version, body)
        self._socket.sendall(b"".join(parts))

    def answer(self) -> Any:
        """To what was sent first, of all that is not answered."""
        while True:
            answer = self._connection.next_answer()
            if answer is not None:
                return answer.decode()
            data = self._socket.recv(65_536)
            assert data, "the broker closed the connection"
            self._connection.receive(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
