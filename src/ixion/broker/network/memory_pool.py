"""Bounds the memory of requests, from reading until the response (queued.max.request.bytes).

Bytes count from the moment they are read until they are released. The size that a frame claims does not count: a frame
of 100 MiB of which four bytes have arrived keeps no other request out. Counted are partial requests, bytes sent ahead
of a response, and requests in flight.

The rule. Before each read a connection asks how much it may read:

- *Room*: while less than the pool is in use, one full read. Requests of more than 1 MiB, the *large* ones, share three
  quarters of the pool; a quarter is always left for the others.
- *No room*: a few KiB at most (`network.read_buffer`). If its frame is not complete then, the connection stops reading
  and waits in line; connections with large frames have their own line.
- *The pass*: the first in each line reads on without room until its frame is complete. It keeps the pass until its
  request has released its bytes; then the next one gets it.

Why the pool is bounded: beyond its size there are at most one read, one frame with the pass in each line, and a few KiB
for every other connection.

Why no connection waits for ever: suppose one waits in a line. Then another connection has the pass of that line and
reads. Either its frame becomes complete, or it is closed: by its client, by the time limit of a partial request, or
within a second or so if its client sends nothing while others wait (`network.slow_senders`). A complete frame is
handled. A handler that waits for other clients must release its request first. So the pass is returned, and the line
moves. Each wait ends, because lines are first come, first served.

A pool of 1000 bytes: A has read 600 of its 900 bytes, B 500 of 700. Both stop: 1100 are in use. A has the pass, reads
its last 300 and is handled. It releases 900, so 500 are in use, and B reads on.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final, Protocol

from ixion._native import i64

LARGE: Final = 1 << 20  # bytes; about the default message.max.bytes
SHARE: Final = 1 << 18  # bytes that one connection may read when it is woken; decides how many are woken


class Waiter(Protocol):
    """A connection, as the pool uses it."""

    def go_on(self) -> None:
        """Read on: there is memory again, or the connection has the pass."""


class WaitingLine:
    """The connections that wait, and the one that has the pass."""

    def __init__(self) -> None:
        self.waiting: dict[Waiter, None] = {}  # a queue from which any member can be removed
        self.passing: Waiter | None = None


class MemoryPool:
    def __init__(self, size: i64) -> None:
        self.size: i64 = size  # negative: no limit
        self.used: i64 = 0
        self._large: i64 = 0  # the part used by large requests
        self._line = WaitingLine()
        self._large_line = WaitingLine()
        self._waking = False
        self._stirred = False  # bytes or a pass were returned, and the lines were not checked since

    @property
    def waiting(self) -> int:
        return len(self._line.waiting) + len(self._large_line.waiting)

    def has_room(self, large: bool) -> bool:
        if self.size < 0:
            return True
        if large:
            return self.used < self.size and self._large < self.size - self.size // 4
        return self.used < self.size or self.used - self._large < self.size // 4

    def may_read(self, connection: Waiter, large: bool) -> bool:
        """Whether the connection may do a full read."""
        return self.has_room(large) or self._line_of(large).passing is connection

    def take(self, size: i64, large: bool) -> None:
        """Count bytes that were read."""
        self.used += size
        if large:
            self._large += size

    def release(self, size: i64, large: bool) -> None:
        """Stop counting bytes."""
        self.used -= size
        if large:
            self._large -= size
        if self._line.waiting or self._large_line.waiting:
            self._wake()

    def wait(self, connection: Waiter, large: bool) -> bool:
        """Wait in line for room. False: no need to wait, because the connection got the free pass."""
        line = self._line_of(large)
        if line.passing is None:
            line.passing = connection
        if line.passing is connection:
            return False
        line.waiting[connection] = None
        return True

    def leave(self, connection: Waiter) -> None:
        """The connection has released its request, or is closed: remove it from the line and take back its pass."""
        for line in (self._line, self._large_line):
            line.waiting.pop(connection, None)
            if line.passing is connection:
                line.passing = None
                self._wake()

    def resize(self, size: i64) -> None:
        self.size = size
        self._wake()

    def _line_of(self, large: bool) -> WaitingLine:
        return self._large_line if large else self._line

    def _wake(self) -> None:
        self._stirred = True
        if self._waking:  # a woken connection may release bytes at once: the loop below checks the lines again
            return
        self._waking = True
        try:
            while self._stirred:
                self._stirred = False
                self._move(self._line, False)
                self._move(self._large_line, True)
        finally:
            self._waking = False

    def _move(self, line: WaitingLine, large: bool) -> None:
        """Give a free pass to the first in line; wake the next ones while there is room for a read."""
        woken: i64 = 0
        while line.waiting:
            passes = line.passing is None
            if not passes and not self._fits(woken, large):
                return
            connection = next(iter(line.waiting))
            del line.waiting[connection]
            if passes:
                line.passing = connection
            woken += 1
            connection.go_on()

    def _fits(self, woken: i64, large: bool) -> bool:
        """Whether there is room for one more, if each woken connection reads its share."""
        self.used += woken * SHARE
        if large:
            self._large += woken * SHARE
        fits = self.has_room(large)
        self.used -= woken * SHARE
        if large:
            self._large -= woken * SHARE
        return fits
