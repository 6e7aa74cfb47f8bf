"""Holds connections above the quota of their address, unread, and closes them after their throttle time (KIP-612).

The wait keeps a client that reconnects at once from overloading the acceptor. At most a thousand are held; beyond that,
a new one is closed at once.
"""

from __future__ import annotations

import socket
from typing import Final

from ixion.broker.network.counters import Counters
from ixion.timer.timer import Timer

MOST_HELD: Final = 1_000
REASON: Final = "address_rate"


class TurnedAway:
    def __init__(self, timer: Timer, counters: Counters) -> None:
        self._timer = timer
        self._counters = counters
        self._held: set[socket.socket] = set()

    @property
    def count(self) -> int:
        return len(self._held)

    def hold(self, accepted: socket.socket, wait_ms: int) -> None:
        if len(self._held) >= MOST_HELD:
            self._close(accepted)
            return
        self._held.add(accepted)
        self._timer.call_later(wait_ms, self._end, accepted)

    def close_all(self) -> None:
        for accepted in list(self._held):
            self._end(accepted)

    def _end(self, accepted: socket.socket) -> None:
        if accepted in self._held:
            self._held.discard(accepted)
            self._close(accepted)

    def _close(self, accepted: socket.socket) -> None:
        accepted.close()
        self._counters.count_closed(REASON)
