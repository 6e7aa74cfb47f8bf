"""Clients that do not read their responses: what is unsent is bounded, all connections together.

One connection holds one unsent response at most, since it is not read from until that is out, and of a response that is
in a file no more than a piece. Thousands of connections could still hold a list of all topics each. Over
`unsent_max_bytes` the connections that have waited longest are closed, but none that has waited less than a second: a
burst of large responses to healthy clients is over by then. Over twice the limit there is no such grace, or many
clients that read nothing would hold gigabytes within their second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion._native import i64
from ixion.timer.clock import NS_PER_MS, Clock
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.network.connection import Connection

GRACE_MS: Final = 1000


class SlowReaders:
    def __init__(self, limit: i64, timer: Timer, clock: Clock) -> None:
        self.limit: i64 = limit
        self.unsent: i64 = 0  # bytes
        self._timer = timer
        self._clock = clock
        self._since: dict[Connection, tuple[int, int]] = {}  # nanoseconds, bytes; longest waiting first
        self._armed = False

    @property
    def count(self) -> int:
        return len(self._since)

    def add(self, connection: Connection, size: int) -> None:
        self._since[connection] = (self._clock(), size)
        self.unsent += size
        if self.unsent > self.limit:
            self.relieve()

    def remove(self, connection: Connection) -> None:
        since = self._since.pop(connection, None)
        if since is not None:
            self.unsent -= since[1]

    def relieve(self) -> None:
        """Close as many as necessary, and look again when the next one's second is over."""
        now_ns = self._clock()
        while self.unsent > self.limit and self._since:
            connection, (since_ns, _) = next(iter(self._since.items()))
            left_ms = GRACE_MS - (now_ns - since_ns) // NS_PER_MS
            if left_ms > 0 and self.unsent <= 2 * self.limit:
                if not self._armed:
                    self._armed = True
                    self._timer.call_later(left_ms, self._look_again)
                return
            self.remove(connection)
            connection.close("slow_reader")

    def _look_again(self) -> None:
        self._armed = False
        self.relieve()
