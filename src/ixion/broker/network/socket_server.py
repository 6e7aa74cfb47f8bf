"""The network of a broker: listeners, planes, and limits that can change at run time.

    server = SocketServer([Listener(name="PLAINTEXT", port=0)], handle, timer=timer)
    server.start_acceptors()       # the ports are open, connections queue up
    server.start_processors()      # requests are read and handled
    ...
    await server.stop(drain_ms=5000)

As in Kafka, each listener has its own acceptor and processors; the listeners of the data plane share one request
channel.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ixion.broker.network.acceptor import Acceptor
from ixion.broker.network.connection import Connection
from ixion.broker.network.limits import NetworkLimits
from ixion.broker.network.listener import BindError, BoundListener, Listener
from ixion.broker.network.plane import Plane, Shared, at_once
from ixion.broker.network.processor import AcceptedConnection, Processor
from ixion.broker.network.quotas import ConnectionQuotas
from ixion.broker.network.request import Handler
from ixion.broker.network.request_channel import RequestChannel
from ixion.broker.network.request_times import RequestTimes
from ixion.broker.network.snapshot import ChannelSnapshot, NetworkSnapshot
from ixion.timer.clock import Clock, system_clock
from ixion.timer.stall_watch import StallWatch
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.broker.security.gate import Gate

CONTROL_QUEUE: Final = 20  # requests, as in Kafka; so is the single handler

log = logging.getLogger("ixion.broker.network")


class SocketServer:
    def __init__(
        self,
        listeners: Sequence[Listener],
        handle: Handler,
        *,
        timer: Timer,
        control_handle: Handler | None = None,
        limits: NetworkLimits | None = None,
        processors: int = 3,  # num.network.threads
        handlers: int = 8,  # num.io.threads
        clock: Clock = system_clock,
        stalls: StallWatch | None = None,
        arrive: Callable[[str], int] = at_once,  # see Shared
    ) -> None:
        names = [listener.name for listener in listeners]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"a server needs listeners with different names, not {names}")
        loop = asyncio.get_running_loop()
        limits = limits or NetworkLimits()
        quotas = ConnectionQuotas(limits, listeners)
        stalls = stalls if stalls is not None else StallWatch()
        self._shared = shared = Shared(
            limits=limits, quotas=quotas, timer=timer, clock=clock, loop=loop, stalls=stalls, arrive=arrive
        )
        self._handlers = handlers
        data = RequestChannel(
            "data", handle, loop=loop, stalls=stalls, queued_max=limits.queued_max_requests, handlers=handlers
        )
        control = RequestChannel(
            "control", control_handle or handle, loop=loop, stalls=stalls, queued_max=CONTROL_QUEUE, handlers=1
        )
        self._data = data
        self._channels = (data, control) if any(listener.control_plane for listener in listeners) else (data,)
        self.acceptors: list[Acceptor] = []
        for listener in listeners:
            plane = Plane(shared, control if listener.control_plane else data)
            count = 1 if listener.control_plane else processors
            first = sum(len(acceptor.processors) for acceptor in self.acceptors)
            mine = [Processor(first + number, plane) for number in range(count)]
            self.acceptors.append(Acceptor(listener, shared, mine, self._close_excess))

    @property
    def limits(self) -> NetworkLimits:
        return self._shared.limits

    @property
    def times(self) -> RequestTimes:
        return self._shared.times

    @property
    def endpoints(self) -> tuple[BoundListener, ...]:
        """The listeners with their ports, those of the data plane first."""
        ordered = sorted(self.acceptors, key=lambda acceptor: acceptor.listener.control_plane)
        return tuple(
            BoundListener(
                name=acceptor.listener.name,
                host=acceptor.listener.host,
                port=acceptor.port,
            )
            for acceptor in ordered
        )

    def port(self, listener: str) -> int:
        return next(acceptor.port for acceptor in self.acceptors if acceptor.listener.name == listener)

    def start_acceptors(self) -> None:
        """Open all ports or none; BindError names the port that could not be opened."""
        bound: list[Acceptor] = []
        try:
            for acceptor in self.acceptors:
                acceptor.bind()
                bound.append(acceptor)
        except BaseException:
            for acceptor in bound:
                acceptor.unbind()
            raise
        for acceptor in self.acceptors:
            acceptor.start()

    def start_processors(self) -> None:
        for processor in self._processors():
            processor.start()

    async def stop(self, drain_ms: int = 10_000) -> None:
        """Stop accepting, wait at most `drain_ms` for the responses to requests in flight, close everything."""
        await asyncio.gather(*(acceptor.stop() for acceptor in self.acceptors))
        for processor in self._processors():
            processor.stop()
        shared = self._shared
        shared.turned_away.close_all()
        if shared.quotas.total:
            empty = shared.quotas.when_empty()
            bound = shared.timer.call_later(drain_ms, self._cut_off)
            await empty
            bound.cancel()
        for channel in self._channels:
            await channel.stop()

    def connect_within(self, listener: str, address: str, gate: Gate | None) -> socket.socket:
        """The client's end of a connection to this listener from within the process, for the live page.

        It is a pair of sockets instead of TCP and TLS. All else is as for a client from `address`: limits, memory,
        quotas, and the rights of the principal. `gate` is that of a session which has logged in before; without one the
        client must log in as the listener demands. Not for listeners that want a certificate of each client.
        BindError if no connection is accepted now.
        """
        acceptor = next(each for each in self.acceptors if each.listener.name == listener)
        quotas = self._shared.quotas
        if not quotas.available(listener) or not quotas.take(listener, address):
            raise BindError(f"listener {listener} takes no more connections now")
        self._shared.counters.accepted += 1
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        ours.setblocking(False)
        within = acceptor.listener._replace(tls=None)
        if gate is not None:
            within = within._replace(gate=lambda: gate)
        accepted = AcceptedConnection(socket=theirs, listener=within, address=address)
        if not any(processor.offer(accepted) for processor in acceptor.processors):
            self._shared.counters.count_closed("excess")
            quotas.give_back(listener, address)
            theirs.close()
            ours.close()
            raise BindError(f"listener {listener} takes no more connections now")
        return ours

    def set_limits(self, limits: NetworkLimits) -> None:
        """Replace all limits, at once and for open connections too."""
        shared = self._shared
        shared.limits = limits
        shared.pool.resize(limits.queued_max_request_bytes)
        shared.slow_readers.limit = limits.unsent_max_bytes
        shared.slow_readers.relieve()
        shared.busy_poll.busy_poll_us = limits.busy_poll_us
        shared.connection_rate.set_rate(limits.max_connection_creation_rate)
        self._data.resize(limits.queued_max_requests, self._handlers)
        for connection in list(self._connections()):
            connection.limits_changed()
        shared.quotas.set_limits(limits)
        self._close_excess()

    def change_handlers(self, handlers: int) -> None:
        """Set how many requests are handled at a time. Running requests continue."""
        self._handlers = handlers
        self._data.resize(self._shared.limits.queued_max_requests, handlers)

    def snapshot(self) -> NetworkSnapshot:
        shared = self._shared
        counters, quotas = shared.counters, shared.quotas
        return NetworkSnapshot(
            connections=dict(quotas.per_listener),
            addresses=len(quotas.per_address),
            accepted=counters.accepted,
            closed=dict(counters.closed),
            requests=counters.requests,
            responses=counters.responses,
            bytes_in=counters.bytes_in,
            bytes_out=counters.bytes_out,
            busy_polls=counters.busy_polls,
            busy_polls_in_vain=counters.busy_polls_in_vain,
            channels=tuple(
                ChannelSnapshot(name=each.name, queued=each.queued, waiting=each.waiting, busy=each.busy)
                for each in self._channels
            ),
            queued_responses=sum(processor.queued_responses for processor in self._processors()),
            pool_size=shared.pool.size,
            pool_used=shared.pool.used,
            pool_waiting=shared.pool.waiting,
            slow_readers=shared.slow_readers.count,
            unsent_bytes=shared.slow_readers.unsent,
        )

    def connections(self) -> list[Connection]:
        """All connections: 1 ms for 100,000."""
        return list(self._connections())

    def _processors(self) -> Iterator[Processor]:
        for acceptor in self.acceptors:
            yield from acceptor.processors

    def _connections(self) -> Iterator[Connection]:
        for processor in self._processors():
            yield from processor.connections.values()

    def _close_excess(self) -> None:
        for connection in self._shared.quotas.excess(self._connections()):
            connection.close("excess")

    def _cut_off(self) -> None:
        left = list(self._connections())
        if not left:  # the last one is closing already
            return
        log.warning("closing %d connections whose requests are still in flight after the drain time", len(left))
        for connection in left:
            connection.cut_off()
