"""The memory that requests may take between being read and being answered (queued.max.request.bytes).

Bytes count from the moment they are read until they are released. What a client has only announced does not count. So a
frame of 100 MiB of which four bytes have come keeps no other request out, and the pool knows what is really held:
half a request, bytes sent ahead of an answer, a request in flight.

The rule. Before each read a connection asks how much it may take:

- *Room*: while less than the pool is in use, as much as one read brings. Requests of more than 1 MiB, the *large* ones,
  share three quarters of the pool; a quarter is always left for the others.
- *No room*: a few KiB at most (`network.read_buffer`). If its frame is not whole then, the connection stops reading and
  waits in line; connections with large frames have a line of their own.
- *The pass*: the first in each line reads on without room until its frame is whole. It keeps the pass until its request
  has released its bytes; then the next one has it.

Why the pool stays bounded: over its size there are at most one read, one frame with the pass in each line, and a few
KiB for every other connection.

Why no connection waits for ever: suppose one waits in a line. Then another connection has the pass of that line, and is
read from. Its frame becomes complete, or it is closed: by its client, by the time limit of every half request, or
within a second or so if its client sends nothing while others wait (`network.slow_senders`). A complete frame is
handled. A handler that waits for other clients must release its request first. So the pass comes back, and the line
moves. Each wait has an end, because lines are first come, first served.

A pool of 1000 bytes: A has 600 of its 900 bytes here, B 500 of 700. Both stop: 1100 are in use. A has the pass, gets
its last 300 and is handled. Its 900 come back, 500 are in use, and B reads on.
"""

from __future__ import annotations

from typing import Final, Protocol

from ixion._native import i64

LARGE: Final = 1 << 20  # bytes; a batch of the default message.max.bytes just fits below it, or is a rare one
SHARE: Final = 1 << 18  # bytes that one connection may read when it is let in: as many are let in as have room


class Waiter(Protocol):
    """What the pool knows of a connection."""

    def go_on(self) -> None:
        """Read on: there is memory again, or the connection has the pass."""


class WaitingLine:
    """The connections that wait, and the one that has the pass."""

    def __init__(self) -> None:
        self.waiting: dict[Waiter, None] = {}  # a queue that one can leave
        self.passing: Waiter | None = None


class MemoryPool:
    def __init__(self, size: i64) -> None:
        self.size: i64 = size  # negative: no limit
        self.used: i64 = 0
        self._large: i64 = 0  # the part of it that large requests have
        self._line = WaitingLine()
        self._large_line = WaitingLine()
        self._waking = False
        self._stirred = False  # bytes or a pass came back that were not offered to the lines yet

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
        """Whether the connection may take as much as comes."""
        return self.has_room(large) or self._line_of(large).passing is connection

    def take(self, size: i64, large: bool) -> None:
        """Count bytes that are here."""
        self.used += size
        if large:
            self._large += size

    def release(self, size: i64, large: bool) -> None:
        """Count bytes that are gone."""
        self.used -= size
        if large:
            self._large -= size
        if self._line.waiting or self._large_line.waiting:
            self._wake()

    def wait(self, connection: Waiter, large: bool) -> bool:
        """Get in line for room. False: no need to wait, because the pass was free and is now this connection's."""
        line = self._line_of(large)
        if line.passing is None:
            line.passing = connection
        if line.passing is connection:
            return False
        line.waiting[connection] = None
        return True

    def leave(self, connection: Waiter) -> None:
        """The connection has released its request, or is gone: it waits no more, and returns the pass if it has it."""
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
        if self._waking:  # a connection that is woken may finish or end at once: the lines are looked at again below
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
        """Give the pass to the first in line if it is free; let in those behind as far as there is room for a read."""
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
        """Whether there is room for one more, if each of those that were woken reads its share."""
        self.used += woken * SHARE
        if large:
            self._large += woken * SHARE
        fits = self.has_room(large)
        self.used -= woken * SHARE
        if large:
            self._large -= woken * SHARE
        return fits
