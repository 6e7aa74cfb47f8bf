"""One connection from a broker to another broker, on the event loop: a connection machine over a transport.

    channel = Channel(Address("10.0.0.2", 9092), "broker-1-fetcher-0")
    answer = await channel.ask(ApiKey.FETCH, 17, request)

The first request opens the connection, and so does the first request after it broke. Requests in flight then fail: they
may or may not have been carried out, and the caller decides whether to repeat them. Requests of several tasks are sent
at once and answered in order; a caller that wants one in flight sends one at a time.

`secure` is called for each new connection, so that replaced certificates are used. A login with a limited lifetime is
repeated before a request would exceed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, cast

from ixion.clients.address import Address
from ixion.clients.core.connection import ConnectionMachine, Outcome, Pending
from ixion.clients.core.security import PLAINTEXT, Security
from ixion.clients.faults import AuthenticationError, DisconnectedError, UnreachableError
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

Reach = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]  # connects a protocol

HIGH_WATER: Final = 1 << 20  # bytes that the transport may hold; requests between brokers are small


class Channel:
    def __init__(
        self,
        address: Address,
        client_id: str,
        *,
        connect_timeout_s: float = 10.0,
        request_timeout_s: float = 30.0,
        secure: Callable[[], Security] = lambda: PLAINTEXT,
        reach: Reach | None = None,
    ) -> None:
        """`reach` connects to the broker in place of the address: for a broker that asks itself."""
        self.address: Final = address
        self.client_id: Final = client_id
        self._connect_timeout_s = connect_timeout_s
        self._request_timeout_s = request_timeout_s
        self._secure = secure
        self._reach = reach
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None
        self._closed = False

    @property
    def connected(self) -> bool:
        return self._link is not None and self._link.machine.ready

    async def ask(self, api: ApiKey, version: int, request: Struct) -> Struct:
        """The answer. KafkaError if the broker cannot be reached, or the connection ended before it answered."""
        link = await self._ready()
        return await link.ask(api, version, request)

    async def version(self, api: ApiKey, *, oldest: int = 0, newest: int = 1 << 15) -> int:
        """The newest version that both sides speak, within what the caller can work with."""
        return (await self._ready()).machine.version(api, oldest=oldest, newest=newest)

    def close(self) -> None:
        """Close the channel; requests in flight fail. Calling it twice is harmless."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._link is not None:
            self._link.end(DisconnectedError(f"the channel to {self.address} was closed"))
            self._link = None

    async def _ready(self) -> _Link:
        if self._closed:
            raise DisconnectedError(f"the channel to {self.address} was closed")
        if self._link is not None and not self._link.machine.closed:
            return self._link
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
            self._connecting.add_done_callback(self._connected)
        try:
            return await asyncio.shield(self._connecting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # the caller was cancelled: it must not go on as after a KafkaError
            raise DisconnectedError(f"the channel to {self.address} was closed") from None

    def _connected(self, done: asyncio.Task[_Link]) -> None:
        self._connecting = None
        if not done.cancelled() and done.exception() is None:
            self._link = done.result()
            if self._closed:  # in the moment in which the connection was made
                self.close()

    async def _connect(self) -> _Link:
        loop = asyncio.get_running_loop()
        security = self._secure()
        machine = ConnectionMachine(
            self.address,
            self.client_id,
            loop.time(),
            connect_timeout_s=self._connect_timeout_s,
            request_timeout_s=self._request_timeout_s,
            login=security.login(),
        )
        machine.defers = True
        link = _Link(loop, machine)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                if self._reach is not None:
                    await self._reach(lambda: link)
                else:
                    host, port = self.address
                    tls = None if security.tls is None else security.tls.context
                    await loop.create_connection(lambda: link, host, port, ssl=tls)
                await link.ready
        except TimeoutError:
            fault: KafkaError = machine.late(self._connect_timeout_s)
        except OSError as error:  # a fault of TLS is one, too
            fault = refused(self.address, error, security)
        except KafkaError as error:
            fault = error
        except asyncio.CancelledError:
            link.end(DisconnectedError(f"the channel to {self.address} was closed"))
            raise
        else:
            return link
        link.end(fault)
        raise fault


Connect = Callable[[Address, str, float], Channel]  # address, client id, seconds for an answer


def connect(address: Address, client_id: str, request_timeout_s: float) -> Channel:
    """A channel without TLS and login."""
    return Channel(address, client_id, request_timeout_s=request_timeout_s)


class _Link(asyncio.Protocol):
    """A transport with its machine."""

    def __init__(self, loop: asyncio.AbstractEventLoop, machine: ConnectionMachine) -> None:
        self.machine = machine
        self.ready: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._alarm: asyncio.TimerHandle | None = None

    async def ask(self, api: ApiKey, version: int, request: Struct) -> Struct:
        self.machine.is_ready(self._loop.time())  # begins a login if one is due, at most once
        while not self.machine.ready and not self.machine.closed:
            await self._logged_in()
        if self.machine.fault is not None:  # it closed after it was ready, before the caller ran
            raise self.machine.fault
        waiting = _Waiting(self._loop.create_future())
        self.machine.send(api, version, request, waiting, self._loop.time())
        self._turn()
        return await waiting.future

    async def _logged_in(self) -> None:
        """Returns when the login that has begun is over, or the connection."""
        if self.ready.done():
            self.ready = self._loop.create_future()
        self._turn()
        await asyncio.wait([self.ready])

    def end(self, fault: KafkaError) -> None:
        self.machine.close(fault)
        self._turn()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is not derived from it
        self._transport.set_write_buffer_limits(HIGH_WATER)
        self.machine.connected(self._loop.time())
        self._turn()

    def data_received(self, data: bytes) -> None:
        self.machine.receive(data, self._loop.time())
        self._turn()

    def connection_lost(self, error: Exception | None) -> None:
        self.machine.lost("" if error is None else str(error))
        self._turn()

    def _turn(self) -> None:
        """Write bytes, complete requests, close if the machine has, and set the next deadline."""
        machine, now_s = self.machine, self._loop.time()
        if self._transport is not None and not self._transport.is_closing():
            while machine.unsent:
                self._transport.write(machine.unsent.popleft())
            machine.wrote(now_s)
        if machine.work is not None:
            work, machine.work = machine.work, None
            self._loop.run_in_executor(None, work).add_done_callback(self._worked)
        for pending, outcome in machine.take_arrivals():
            pending.complete(outcome, now_s)
        if not self.ready.done():
            if machine.fault is not None:
                self.ready.set_exception(machine.fault)
                self.ready.exception()  # mark it as retrieved: perhaps no caller waits
            elif machine.ready:
                self.ready.set_result(None)
        if machine.closed:
            if self._transport is not None:
                self._transport.abort()
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
        elif machine.in_flight and self._alarm is None:
            self._alarm = self._loop.call_at(machine.deadline_s, self._ring)

    def _worked(self, done: asyncio.Future[object]) -> None:
        if not done.cancelled():
            done.exception()  # mark it as retrieved: the login itself fails in the same way
        self.machine.worked(self._loop.time())
        self._turn()

    def _ring(self) -> None:
        self._alarm = None
        self.machine.expire(self._loop.time())
        self._turn()


def refused(address: Address, error: OSError, security: Security) -> KafkaError:
    """The fault of a failed connection attempt."""
    if security.tls is not None:
        import ssl

        from ixion.clients.tls_line import explain

        if isinstance(error, ssl.SSLError):
            return AuthenticationError(f"{address}: {explain(error)}")
    return UnreachableError(f"{address} cannot be reached: {error}")


class _Waiting(Pending):
    """A request of a task."""

    def __init__(self, future: asyncio.Future[Struct]) -> None:
        self.future = future

    def complete(self, outcome: Outcome, _now_s: float) -> None:
        if self.future.done():
            return  # the task was cancelled
        if isinstance(outcome, KafkaError):
            self.future.set_exception(outcome)
        else:
            assert outcome is not None
            self.future.set_result(outcome)
