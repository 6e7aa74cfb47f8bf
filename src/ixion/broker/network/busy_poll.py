"""Busy polling after a small response, for clients that send the next request at once.

A thread that waits for the network sleeps, and soon its core does too. Waking them takes 20 to 60 µs, longer than
handling a small request. A client that waits for each response sends its next request within some 50 µs. So after a
small response the loop polls for the next request without sleeping, for `busy_poll_us` at most: a synchronous produce
on an idle machine takes 70 µs instead of 120.

Polling pays only if a request comes. Each time none comes, we skip polling after twice as many responses as before; the
next request that does come resets this. A client that sends a request every millisecond costs 100 µs of a core per
1,024 requests; an idle broker costs nothing. We do not poll after large responses: a client that moves megabytes needs
the cores for other things.

Polling also pays only while no other thread needs the core. The scheduler runs a thread that sleeps a lot as soon as it
has work, but preempts a thread that never sleeps, for milliseconds. If two polls are more than GAP_NS apart, we were
preempted: we back off for some hundred responses, twice as many the next time, at most as many as one synchronous
client gets in a second. The back-off halves after every thousand requests that came while we polled.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import asyncio
from typing import Final

from ixion._native import i64
from ixion.broker.network.counters import Counters
from ixion.timer.clock import Clock, system_clock

SMALL: Final = 16_384  # bytes of a request and its response together
MAX_SKIPPED: Final = 1023  # responses without polling, after polls that saw no request
BACK_OFF: Final = (255, 16_383)  # responses without polling after we were preempted: at first, at most
GAP_NS: Final = 500_000  # a poll takes two or three µs, a request some ten
HALVED_AFTER: Final = 1000  # requests


class BusyPoll:
    def __init__(
        self, busy_poll_us: int, loop: asyncio.AbstractEventLoop, counters: Counters, clock: Clock = system_clock
    ) -> None:
        self.busy_poll_us = busy_poll_us
        self._loop = loop
        self._counters = counters
        self._clock = clock
        self._until_ns: i64 = 0  # end of the polling; 0: a request came
        self._polled_ns: i64 = 0  # time of the last poll
        self._polling = False
        self._skip: i64 = 0  # responses to skip after the next poll that sees no request
        self._back_off: i64 = BACK_OFF[0]  # responses to skip after the next preemption
        self._met: i64 = 0  # requests that came while we polled, since the last back-off
        self._left: i64 = 0  # responses still to skip

    def answered(self) -> None:
        """Call after a small response."""
        if self._left > 0:
            self._left -= 1
            return
        window_ns: i64 = self.busy_poll_us * 1000
        if window_ns == 0:
            return
        self._polled_ns = self._clock()
        self._until_ns = self._polled_ns + window_ns
        if not self._polling:
            self._polling = True
            self._counters.busy_polls += 1
            self._loop.call_soon(self._poll)

    def heard(self) -> None:
        """Call when bytes arrive on any connection."""
        if self._until_ns:
            self._until_ns = 0
            self._skip = 0
            self._met += 1
            if self._met == HALVED_AFTER:
                self._met = 0
                self._back_off = max(self._back_off // 2, BACK_OFF[0])

    def _poll(self) -> None:
        if self._until_ns == 0:
            self._polling = False
            return
        now_ns: i64 = self._clock()
        if now_ns - self._polled_ns > GAP_NS:
            self._stop(self._back_off)
            self._met = 0
            self._back_off = min(2 * self._back_off + 1, BACK_OFF[1])
        elif now_ns >= self._until_ns:
            self._skip = min(2 * self._skip + 1, MAX_SKIPPED)
            self._stop(self._skip)
        else:
            self._polled_ns = now_ns
            self._loop.call_soon(self._poll)

    def _stop(self, answers: i64) -> None:
        self._polling = False
        self._until_ns = 0
        self._left = answers
        self._counters.busy_polls_in_vain += 1
