"""The memory that requests may take between being read and being answered (queued.max.request.bytes).

A request takes its size when it is announced, before its bytes are read. As in Kafka, whoever finds anything left gets
all it asks for, so the pool can be overdrawn by one request; a strict pool would never read one larger than itself.
When nothing is left, connections wait in line with reading paused, and the line moves when memory comes back.

A pool of 1000 bytes: A takes 600, B takes 600 (-200 left), C waits. A gives back: 400 left, C is let in.

Announcing is free, so three connections that announce 100 MiB each and fall silent would hold up everybody. Therefore
requests of more than 1 MiB share three quarters of the pool and have a line of their own; what others send, hardly ever
that large, always finds a quarter. (Kafka does not make this difference.)
"""

from __future__ import annotations

from typing import Final, Protocol

from ixion._native import i64

LARGE: Final = 1 << 20  # bytes; a batch of the default message.max.bytes just fits below it, or is a rare one


class Waiter(Protocol):
    """A connection, to the pool."""

    def go_on(self) -> None:
        """There is memory again."""


class MemoryPool:
    def __init__(self, size: i64) -> None:
        self.size: i64 = size  # negative: no limit
        self.used: i64 = 0
        self._large: i64 = 0  # the part of it that large requests have
        self._waiting: dict[Waiter, None] = {}  # a queue that one can leave
        self._waiting_large: dict[Waiter, None] = {}
        self._waking = False

    @property
    def waiting(self) -> int:
        return len(self._waiting) + len(self._waiting_large)

    def reserve(self, size: i64) -> bool:
        if size > LARGE:
            if not self._has_room_for_large(size):
                return False
            self._large += size
        elif not self._has_room():
            return False
        self.used += size
        return True

    def release(self, size: i64) -> None:
        self.used -= size
        if size > LARGE:
            self._large -= size
        if self._waiting or self._waiting_large:
            self._wake()

    def resize(self, size: i64) -> None:
        self.size = size
        self._wake()

    def wait(self, connection: Waiter, size: i64) -> None:
        if size > LARGE:
            self._waiting_large[connection] = None
        else:
            self._waiting[connection] = None

    def forget(self, connection: Waiter) -> None:
        self._waiting.pop(connection, None)
        self._waiting_large.pop(connection, None)

    def _has_room(self) -> bool:
        return self.size < 0 or self.used < self.size or self.used - self._large < self.size // 4

    def _has_room_for_large(self, size: i64) -> bool:
        """One is let in however large it is."""
        if self.size < 0 or self._large == 0:
            return self._has_room()
        return self.used < self.size and self._large + size <= self.size - self.size // 4

    def _wake(self) -> None:
        if self._waking:  # whoever is woken may finish at once and give back
            return
        self._waking = True
        try:
            while self._waiting and self._has_room():
                connection = next(iter(self._waiting))
                del self._waiting[connection]
                connection.go_on()
            # Whoever still finds no room goes back to the end of the line, so each is asked once.
            for connection in list(self._waiting_large):
                if not self._has_room_for_large(LARGE + 1):
                    break
                if connection in self._waiting_large:
                    del self._waiting_large[connection]
                    connection.go_on()
        finally:
            self._waking = False
