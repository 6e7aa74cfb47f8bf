"""Staying awake for clients that ask again at once.

A thread that waits for the network is put to sleep, and soon its core too; to wake them takes 20 to 60 µs, which is
more than a small request takes to be answered. A client that waits for each answer before it asks again is back within
some 50 µs. So after a small answer the loop looks for the next request without going to sleep, for `watch_us` at most:
a synchronous produce on an idle machine takes 70 µs instead of 120.

It pays only if somebody comes. Each time nobody does, twice as many answers as before go by until it is tried again;
one who comes ends that. A client that asks every millisecond costs 100 µs of a core per 1,024 requests, a broker at
rest nothing at all. Large answers do not count: who moves megabytes needs the cores for other things.

It also pays only while nobody else wants the core. The scheduler lets one who sleeps a lot run at once when there is
work for him; one who never sleeps waits in line, for milliseconds. Whoever finds that much time gone between two looks
has been put aside, and sleeps as others do for some hundred answers, for twice as many the next time, up to a second of
one synchronous client. Each thousand requests that came while we were awake halve that again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ixion._native import i64
from ixion.network.counters import Counters
from ixion.timer.clock import Clock, system_clock

SMALL: Final = 16_384  # bytes of a request and its answer together
IN_VAIN: Final = 1023  # answers that go by, at most
PUT_ASIDE: Final = (255, 16_383)  # answers that go by, at first and at most
GAP_NS: Final = 500_000  # a look takes two or three µs, a request some ten
FORGIVEN_AFTER: Final = 1000  # requests


class Attention:
    def __init__(
        self, watch_us: int, loop: asyncio.AbstractEventLoop, counters: Counters, clock: Clock = system_clock
    ) -> None:
        self.watch_us = watch_us
        self._loop = loop
        self._counters = counters
        self._clock = clock
        self._until_ns: i64 = 0  # 0: somebody came
        self._looked_ns: i64 = 0
        self._looking = False
        self._pass: i64 = 0  # answers that go by after the next time that nobody came,
        self._aside: i64 = PUT_ASIDE[0]  # and after the next time that we were put aside
        self._met: i64 = 0  # requests since then
        self._left: i64 = 0  # of those that go by now

    def answered(self) -> None:
        """A small answer has left."""
        if self._left > 0:
            self._left -= 1
            return
        window_ns: i64 = self.watch_us * 1000
        if window_ns == 0:
            return
        self._looked_ns = self._clock()
        self._until_ns = self._looked_ns + window_ns
        if not self._looking:
            self._looking = True
            self._counters.watches += 1
            self._loop.call_soon(self._look)

    def heard(self) -> None:
        """Bytes have come, from whomever."""
        if self._until_ns:
            self._until_ns = 0
            self._pass = 0
            self._met += 1
            if self._met == FORGIVEN_AFTER:
                self._met = 0
                self._aside = max(self._aside // 2, PUT_ASIDE[0])

    def _look(self) -> None:
        if self._until_ns == 0:
            self._looking = False
            return
        now_ns: i64 = self._clock()
        if now_ns - self._looked_ns > GAP_NS:
            self._sleep(self._aside)
            self._met = 0
            self._aside = min(2 * self._aside + 1, PUT_ASIDE[1])
        elif now_ns >= self._until_ns:
            self._pass = min(2 * self._pass + 1, IN_VAIN)
            self._sleep(self._pass)
        else:
            self._looked_ns = now_ns
            self._loop.call_soon(self._look)

    def _sleep(self, answers: i64) -> None:
        self._looking = False
        self._until_ns = 0
        self._left = answers
        self._counters.watches_in_vain += 1
