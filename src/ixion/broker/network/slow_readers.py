"""Bounds the unsent responses of all connections together, for clients that do not read.

A connection has at most one unsent response in memory, because we read no further request until it is sent; of a
response in a file, at most one piece. Thousands of connections could still have a list of all topics each. Above
`unsent_max_bytes` we close the connections that have waited longest, but none that has waited less than a second: by
then, a burst of large responses to healthy clients is over. Above twice the limit we close those too, or many clients
that read nothing would hold gigabytes for a second.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion._native import i64
from ixion.timer.clock import NS_PER_MS, Clock
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.broker.network.connection import Connection

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
        """Close as many as necessary, and check again when the next one has waited a second."""
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
