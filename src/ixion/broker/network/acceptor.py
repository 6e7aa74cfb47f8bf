"""Accepts the connections of one listener, within the quotas, and assigns them to the processors in turn."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from ixion.broker.network.listener import BindError, Listener
from ixion.broker.network.plane import Shared
from ixion.broker.network.processor import AcceptedConnection, Processor

RETRY_S: Final = 0.1  # wait if the system has no more file descriptors
AT_ONCE: Final = 16  # connections accepted in one turn of the loop; a TLS connection costs some 0.2 ms

log = logging.getLogger("ixion.broker.network")


class Acceptor:
    def __init__(
        self, listener: Listener, shared: Shared, processors: Sequence[Processor], close_excess: Callable[[], None]
    ) -> None:
        self.listener = listener
        self.processors = processors
        self._shared = shared
        self._close_excess = close_excess
        self._next = 0
        self._in_turn = 0  # connections accepted in this turn of the loop
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The bound port, also if the listener is configured with port 0."""
        assert self._socket is not None, "the listener is not bound"
        return int(self._socket.getsockname()[1])

    def bind(self) -> None:
        listener = self.listener
        try:
            self._socket = socket.create_server(
                (listener.host, listener.port),
                family=socket.AF_INET6 if ":" in listener.host else socket.AF_INET,
                backlog=listener.backlog,
            )
        except OSError as error:
            where = f"{listener.host or '*'}:{listener.port}"
            raise BindError(f"listener {listener.name} cannot listen on {where}: {error.strerror or error}") from error
        self._socket.setblocking(False)

    def start(self) -> None:
        self._task = self._shared.loop.create_task(self._run(), name=f"acceptor {self.listener.name}")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.unbind()

    def unbind(self) -> None:
        if self._socket is not None:
            self._socket.close()

    async def _run(self) -> None:
        assert self._socket is not None, "the listener is not bound"
        while True:
            try:
                accepted, address = await self._accept(self._socket)
            except OSError as error:
                log.error("listener %s cannot accept connections: %s; retrying", self.listener.name, error)
                await asyncio.sleep(RETRY_S)
                continue
            try:
                await self._admit(accepted, str(address[0]))
            except BaseException as error:
                accepted.close()
                if not isinstance(error, OSError):  # an OSError means that the client has closed the connection
                    raise

    async def _accept(self, listening: socket.socket) -> tuple[socket.socket, tuple[object, ...]]:
        """The next connection. Waits for the loop only if none is ready, or after AT_ONCE connections.

        Not with `sock_accept`: if this task were cancelled in the turn of the loop in which a connection arrives, the
        socket would be lost in a result that no code reads.
        """
        if self._in_turn >= AT_ONCE:
            self._in_turn = 0
            await asyncio.sleep(0)
        while True:
            try:
                accepted = listening.accept()
            except BlockingIOError:
                self._in_turn = 0
                await self._has_connection(listening)
            else:
                self._in_turn += 1
                return accepted

    async def _has_connection(self, listening: socket.socket) -> None:
        loop = self._shared.loop
        came: asyncio.Future[None] = loop.create_future()
        loop.add_reader(listening, lambda: None if came.done() else came.set_result(None))
        try:
            await came
        finally:
            loop.remove_reader(listening)

    async def _admit(self, accepted: socket.socket, address: str) -> None:
        name, quotas = self.listener.name, self._shared.quotas
        await quotas.wait_for_slot(name)
        if not quotas.is_protected(name):
            await self._shared.connection_rate.wait()
        set_options(accepted)
        self._shared.counters.accepted += 1
        wait_ms = self._shared.arrive(address)
        if wait_ms > 0:
            self._shared.turned_away.hold(accepted, wait_ms)
            return
        if not quotas.take(name, address):
            accepted.close()
            self._shared.counters.count_closed("address_limit")
            log.info("closed a connection from %s: max.connections.per.ip is reached", address)
            return
        if quotas.exceeded:
            self._close_excess()
        await self._assign(AcceptedConnection(socket=accepted, listener=self.listener, address=address))

    async def _assign(self, connection: AcceptedConnection) -> None:
        """Give it to the next processor that has room; if none has, wait for the last one asked."""
        for _ in self.processors:
            processor = self.processors[self._next]
            self._next = (self._next + 1) % len(self.processors)
            if processor.offer(connection):
                return
        try:
            await processor.put(connection)
        except asyncio.CancelledError:
            self._shared.counters.count_closed("shutdown")
            self._shared.quotas.give_back(connection.listener.name, connection.address)
            raise


def set_options(accepted: socket.socket) -> None:
    """As Kafka: no delay for small responses (TCP_NODELAY), keep-alive to detect dead peers."""
    accepted.setblocking(False)
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
