"""What the brokers and the clients of a simulation have in place of sockets and transports, over the ends of `net`."""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from typing import Any

from devtools.sim.loop import NODE, Node, SimLoop
from devtools.sim.net import End, Network


class Listening:
    """A listening socket, as `network.acceptor` uses one."""

    def __init__(self, network: Network, node: Node, host: str, port: int) -> None:
        self.network = network
        self.node = node
        self.address = (host, port)
        self._backlog: deque[End] = deque()
        self._reader: Callable[..., object] | None = None  # called when a connection has come
        network.listeners[self.address] = self

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def setblocking(self, _: bool) -> None:
        """It never blocks."""

    def accept(self) -> tuple[Accepted, tuple[str, int]]:
        if not self._backlog:
            raise BlockingIOError
        end = self._backlog.popleft()
        return Accepted(end), (end.peer_host, 0)

    def read_by(self, callback: Callable[..., object] | None, _: tuple[object, ...]) -> None:
        """Called while no connection waits: the acceptor has just tried."""
        self._reader = callback

    def arrived(self, end: End) -> None:
        self._backlog.append(end)
        if self._reader is not None:
            self._reader()

    def close(self) -> None:
        if self.network.listeners.get(self.address) is self:
            del self.network.listeners[self.address]


class Accepted:
    """A socket that was accepted."""

    def __init__(self, end: End) -> None:
        self.end = end

    def setblocking(self, _: bool) -> None:
        """It never blocks."""

    def setsockopt(self, *_: object) -> None:
        """There are no options."""

    def close(self) -> None:
        self.end.close()


class SimTransport(asyncio.Transport):
    """A transport over an end, for protocols with buffers and without."""

    def __init__(self, end: End, protocol: Any) -> None:
        super().__init__({"peername": (end.peer_host, 0), "sockname": (end.host, 0)})
        self._end = end
        self._protocol = protocol
        self._reading = True
        self._closing = False
        self._lost = False
        end.on_stir = self._stirred

    def begin(self) -> None:
        self._protocol.connection_made(self)
        self._stirred()

    def _stirred(self) -> None:
        inbox = self._end.inbox
        while inbox and self._reading and not self._closing:
            data = inbox.popleft()
            if isinstance(self._protocol, asyncio.BufferedProtocol):
                self._feed(data)
            else:
                self._protocol.data_received(data)
        if self._end.ended and not inbox and not self._lost:
            self._closing = True
            self._lose()

    def _feed(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            room = self._protocol.get_buffer(len(view))
            taken = min(len(room), len(view))
            room[:taken] = view[:taken]
            view = view[taken:]
            self._protocol.buffer_updated(taken)
            if not self._reading and view:
                self._end.inbox.appendleft(bytes(view))
                return

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            self._end.close()
            self._protocol.connection_lost(None)

    def write(self, data: Any) -> None:
        if not self._closing:
            self._end.send(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(bytes(each) for each in list_of_data))

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._end.stir()

    def is_reading(self) -> bool:
        return self._reading

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._end.send_end()
            self._end.network.loop.call_soon(self._lose)

    def abort(self) -> None:
        self.close()

    def set_write_buffer_limits(self, high: Any = None, low: Any = None) -> None:
        """Nothing waits to be sent: the network takes everything."""

    def get_write_buffer_size(self) -> int:
        return 0

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol


class ClientSocket:
    """A socket that does not block, as `clients.line` uses one."""

    def __init__(self, network: Network, loop: SimLoop, host: str, port: int) -> None:
        node = NODE.get()
        assert node is not None
        self._loop = loop
        self._end = End(network, node, node.host)
        self._end.on_stir = self._stirred
        self._number = network.number()
        self._code: int | None = None
        self._reader: tuple[Any, Any] = (None, ())
        self._writer: tuple[Any, Any] = (None, ())
        loop._readers[self._number] = self
        network.connect(self._end, host, port, self._connected)

    def _connected(self, code: int) -> None:
        self._code = code
        self._stirred()

    @property
    def code(self) -> int | None:
        """None: under way."""
        return self._code

    def fileno(self) -> int:
        return self._number

    def read_by(self, callback: Any, args: Any) -> None:
        self._reader = (callback, args)
        self._again()

    def write_by(self, callback: Any, args: Any) -> None:
        self._writer = (callback, args)
        self._again()

    def _again(self) -> None:
        if self._is_readable or (self._writer[0] is not None and self._code is not None):
            self._end.stir()

    @property
    def has_data(self) -> bool:
        """Or its end."""
        return bool(self._end.inbox) or self._end.ended

    @property
    def _is_readable(self) -> bool:
        return self._reader[0] is not None and self.has_data

    def _stirred(self) -> None:
        callback, args = self._writer
        if callback is not None and self._code is not None:
            callback(*args)
        callback, args = self._reader
        if self._is_readable:
            callback(*args)
        if self._number in self._loop._readers:
            self._again()

    def recv(self, size: int) -> bytes:
        inbox = self._end.inbox
        if inbox:
            data = inbox.popleft()
            if len(data) > size:
                inbox.appendleft(data[size:])
                data = data[:size]
            return data
        if self._end.ended:
            return b""
        raise BlockingIOError

    def recv_into(self, view: memoryview) -> int:
        data = self.recv(len(view))
        view[: len(data)] = data
        return len(data)

    def sendmsg(self, parts: Any) -> int:
        if self._end.ended or not self._end.is_open:
            raise OSError(errno.EPIPE, "Broken pipe")
        data = b"".join(bytes(part) for part in parts)
        self._end.send(data)
        return len(data)

    def close(self) -> None:
        self._loop._readers.pop(self._number, None)
        self._reader = self._writer = (None, ())
        self._end.close()


async def create_connection(network: Network, factory: Any, host: str, port: int) -> tuple[SimTransport, Any]:
    """What a loop's `create_connection` does."""
    loop = network.loop
    node = NODE.get()
    assert node is not None
    end = End(network, node, node.host)
    done: asyncio.Future[int] = loop.create_future()

    def connected(code: int) -> None:
        if not done.done():
            done.set_result(code)
        elif code == 0:
            end.close()

    network.connect(end, host, port, connected)
    code = await done
    if code:
        raise ConnectionRefusedError(code, "Connection refused")
    protocol = factory()
    transport = SimTransport(end, protocol)
    transport.begin()
    return transport, protocol
