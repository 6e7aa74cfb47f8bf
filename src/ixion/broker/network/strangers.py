"""Peers that do not speak Kafka: a health check that speaks HTTP, a scanner, a client that wants TLS.

Each connection is closed and counted; the log gets one line per address.
"""

from __future__ import annotations

import logging
from typing import Final

REMEMBERED: Final = 1024  # addresses; the oldest is dropped first

log = logging.getLogger("ixion.broker.network")


class Strangers:
    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def met(self, address: str, listener: str, what: str) -> None:
        if address in self._known:
            return
        if len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[address] = None
        log.warning("closed %s on listener %s: it sent %s (logged once per address)", address, listener, what)
