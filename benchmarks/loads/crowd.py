"""Connections that do nothing: each has had one exchange with the broker and stays open."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.loads.prepared import api_versions_request, framed
from ixion.language.protocol.registry import ApiKey

SPARE_FILES = 500  # descriptors that a process needs for other things
AT_A_TIME = 200  # connections that are opened before their answers are read: fewer than a listener's backlog


def most_connections(partitions: int = 0) -> int:
    """How many connections a broker with so many partitions may have: it inherits our limit of descriptors."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 30 if hard == resource.RLIM_INFINITY else hard - partitions - SPARE_FILES


@contextmanager
def idle(port: int, count: int) -> Iterator[None]:
    greeting = framed(ApiKey.API_VERSIONS, 3, api_versions_request(""))
    with ExitStack() as stack:
        for first in range(0, count, AT_A_TIME):
            some = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                for _ in range(min(AT_A_TIME, count - first))
            ]
            for connection in some:
                connection.sendall(greeting)
            for connection in some:
                size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
                connection.recv(size, socket.MSG_WAITALL)
        yield
