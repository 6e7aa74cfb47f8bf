"""Limits how fast clients may connect (max.connection.creation.rate), with a burst of one second.

Each connection is due 1/rate seconds after the one before. Accepting may run ahead of that by one second, and waits
otherwise. At a rate of 10, thirty clients that connect together after a quiet time:

    the first ten       accepted at once, due at 0, 100, 200 … 900 ms
    the eleventh        due at 1000 ms, accepted at once too: one second ahead
    the twelfth         due at 1100 ms, accepted at 100 ms; the last one at 1900 ms

A connection that must wait stays in the backlog of the system. The listeners of brokers and the controller have no
limit.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ixion._native import i64
from ixion.broker.network.limits import NO_LIMIT
from ixion.timer.clock import NS_PER_MS, Clock
from ixion.timer.timer import Timer

SECOND_NS: Final = 1_000_000_000


class ConnectionRate:
    def __init__(self, rate: int, timer: Timer, clock: Clock) -> None:
        self._rate = rate
        self._timer = timer
        self._clock = clock
        self._due_ns: i64 = 0  # when the next connection is due
        self._waiting: set[asyncio.Future[None]] = set()

    def set_rate(self, rate: int) -> None:
        if rate != self._rate:
            self._rate = rate
            for each in self._waiting:
                wake(each)

    async def wait(self) -> None:
        """Wait until one more connection may be accepted."""
        while True:
            left_ns = self._take()
            if left_ns == 0:
                return
            woken = asyncio.get_running_loop().create_future()
            self._waiting.add(woken)
            bound = None if left_ns < 0 else self._timer.call_later(-(-left_ns // NS_PER_MS), wake, woken)
            try:
                await woken
            finally:
                self._waiting.discard(woken)
                if bound is not None:
                    bound.cancel()

    def _take(self) -> int:
        """Nanoseconds until one more may be accepted; 0: now, and it is counted; negative: never, at this rate."""
        rate: i64 = self._rate
        if rate >= NO_LIMIT:
            return 0
        if rate == 0:
            return -1
        now_ns: i64 = self._clock()
        due_ns: i64 = max(self._due_ns, now_ns)
        if due_ns - now_ns > SECOND_NS:
            return due_ns - now_ns - SECOND_NS
        self._due_ns = due_ns + SECOND_NS // rate
        return 0


def wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
