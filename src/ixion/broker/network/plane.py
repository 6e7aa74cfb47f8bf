"""State that connections share. The data plane serves clients and brokers, the control plane the controller: its
requests must not queue behind a thousand fetches, so it has its own queue and handler.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.broker.network.busy_poll import BusyPoll
from ixion.broker.network.connection_rate import ConnectionRate
from ixion.broker.network.counters import Counters
from ixion.broker.network.limits import NetworkLimits
from ixion.broker.network.memory_pool import MemoryPool
from ixion.broker.network.read_buffer import ReadBuffer
from ixion.broker.network.request_channel import RequestChannel
from ixion.broker.network.request_times import RequestTimes
from ixion.broker.network.slow_readers import SlowReaders
from ixion.broker.network.slow_senders import SlowSenders
from ixion.broker.network.strangers import Strangers
from ixion.broker.network.turned_away import TurnedAway
from ixion.timer.clock import Clock
from ixion.timer.lane import Lane
from ixion.timer.stall_watch import StallWatch
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.broker.network.quotas import ConnectionQuotas


def at_once(_address: str) -> int:
    return 0


class Shared:
    """Shared by the whole server, both planes."""

    def __init__(
        self,
        *,
        limits: NetworkLimits,
        quotas: ConnectionQuotas,
        timer: Timer,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        stalls: StallWatch,
        arrive: Callable[[str], int] = at_once,
    ) -> None:
        """`arrive`: after how many milliseconds to close a connection of an address; 0: accept it."""
        self.limits = limits
        self.quotas = quotas
        self.timer = timer
        self.clock = clock
        self.loop = loop
        self.stalls = stalls
        self.connection_rate = ConnectionRate(limits.max_connection_creation_rate, timer, clock)
        self.pool = MemoryPool(limits.queued_max_request_bytes)
        self.read_buffer = ReadBuffer()
        self.lane = Lane(loop.call_soon)
        self.slow_senders = SlowSenders(self.pool, timer, clock)
        self.slow_readers = SlowReaders(limits.unsent_max_bytes, timer, clock)
        self.counters = Counters()
        self.busy_poll = BusyPoll(limits.busy_poll_us, loop, self.counters)
        self.times = RequestTimes()
        self.strangers = Strangers()
        self.turned_away = TurnedAway(timer, self.counters)
        self.arrive = arrive


class Plane:
    def __init__(self, shared: Shared, channel: RequestChannel) -> None:
        self.shared = shared
        self.channel = channel
