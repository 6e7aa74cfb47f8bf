"""The memory that requests may take between being read and being answered (queued.max.request.bytes).

A request takes its size when it is announced, before its bytes are read. As in Kafka, whoever finds anything left gets
all it asks for, so the pool can be overdrawn by one request; a strict pool would never read one larger than itself.
When nothing is left, connections wait in line with reading paused, and the line moves when memory comes back.

A pool of 1000 bytes: A takes 600, B takes 600 (-200 left), C waits. A gives back: 400 left, C is let in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion._native import i64

if TYPE_CHECKING:
    from ixion.network.connection import Connection


class MemoryPool:
    def __init__(self, size: i64) -> None:
        self.size: i64 = size  # negative: no limit
        self.used: i64 = 0
        self._waiting: dict[Connection, None] = {}  # a queue that one can leave
        self._waking = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def reserve(self, size: i64) -> bool:
        if self.used >= self.size and self.size >= 0:
            return False
        self.used += size
        return True

    def release(self, size: i64) -> None:
        self.used -= size
        if self._waiting:
            self._wake()

    def resize(self, size: i64) -> None:
        self.size = size
        self._wake()

    def wait(self, connection: Connection) -> None:
        self._waiting[connection] = None

    def forget(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)

    def _wake(self) -> None:
        if self._waking:  # whoever is woken may finish at once and give back
            return
        self._waking = True
        try:
            while self._waiting and (self.used < self.size or self.size < 0):
                connection = next(iter(self._waiting))
                del self._waiting[connection]
                connection.go_on()
        finally:
            self._waking = False
