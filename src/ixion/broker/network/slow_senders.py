"""Closes clients early whose partial requests hold memory that others wait for.

A partial request has a time limit of half a minute and more (`limits.patience_ms`). That is right on a slow network,
but too long while the memory pool is full: 500 connections that send half a megabyte each and then nothing would keep
all others out for that long. So while a connection waits for memory, we close connections that sent part of a request
and then nothing for a second, or less than the slowest rate allowed after the first second. We do not close a
connection from which we do not read.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion._native import i64
from ixion.broker.network.memory_pool import MemoryPool
from ixion.timer.clock import Clock
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.broker.network.connection import Connection

GRACE_NS: Final = 1_000_000_000
LOOK_MS: Final = 100  # between two checks of all partial requests, while a connection waits for memory


class SlowSenders:
    def __init__(self, pool: MemoryPool, timer: Timer, clock: Clock) -> None:
        self._pool = pool
        self._timer = timer
        self._clock = clock
        self._halves: dict[Connection, None] = {}  # connections with a partial request from which we read
        self._armed = False

    @property
    def count(self) -> int:
        return len(self._halves)

    def add(self, connection: Connection) -> None:
        self._halves[connection] = None

    def remove(self, connection: Connection) -> None:
        self._halves.pop(connection, None)

    def press(self) -> None:
        """Call when a connection waits for memory."""
        if not self._armed:
            self._armed = True
            self._timer.call_later(LOOK_MS, self._look)

    def _look(self) -> None:
        self._armed = False
        now_ns: i64 = self._clock()
        for connection in list(self._halves):
            if self._pool.waiting == 0:
                return
            if connection.is_slow(now_ns):
                connection.close("slow_sender")
        if self._pool.waiting:
            self.press()
