"""Whether an address accepts connections, checked before Spark starts: Spark itself would try for a minute."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Final

TIMEOUT_S: Final = 3.0


def connect(addresses: Iterable[str]) -> socket.socket:
    """To the first of ADDRESSES (`host:port`, `[::1]:port`) that answers; ConnectionError if there is none."""
    said = "no address was given"
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            return socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S)
        except OSError as error:
            said = error.strerror or str(error)
    raise ConnectionError(said)
