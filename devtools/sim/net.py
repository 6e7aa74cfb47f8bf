"""A network in memory: connections between hosts, whose bytes take time, keep their order, and can be held up.

Each piece of data takes a random time; within one direction of a connection none overtakes another, between
connections they do. A cut between two hosts holds everything up until it is healed, as TCP does by sending again; a
connection attempt meanwhile hangs. When a process dies, its host resets the connections; when a whole host goes
(`vanish`), the other ends hear nothing: they are half open until somebody's patience ends.
"""

from __future__ import annotations

import asyncio
import errno
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from devtools.sim.loop import NODE, Node, SimLoop, context_of

USUAL_S: Final = (0.0001, 0.002)
SLOW_S: Final = (0.02, 0.3)
Pair = tuple[str, str]
Hold = tuple[str, str, int, bool]  # client, server, API key; whether answers are held, else the requests


class Network:
    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.listeners: dict[tuple[str, int], Listening] = {}
        self.cuts: set[Pair] = set()  # directions: (from, to)
        self.slow: set[str] = set()  # hosts
        self.slow_pairs: set[Pair] = set()
        self.holds: set[Hold] = set()
        self.ends: list[End] = []
        self._numbers = 1_000

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def delay_s(self, one: str, other: str) -> float:
        is_slow = one in self.slow or other in self.slow or (one, other) in self.slow_pairs
        low, high = SLOW_S if is_slow else USUAL_S
        return self.loop.random.uniform(low, high)

    def cut(self, one: str, other: str, both: bool = True) -> None:
        self.cuts.add((one, other))
        if both:
            self.cuts.add((other, one))

    def heal(self, one: str, other: str) -> None:
        self.cuts.discard((one, other))
        self.cuts.discard((other, one))
        self._release()

    def heal_all(self) -> None:
        self.cuts.clear()
        self.slow.clear()
        self.slow_pairs.clear()
        self.holds.clear()
        self._release()

    def hold(self, hold: Hold) -> None:
        """Keep back these requests or answers, with all that follows on the same connections: other connections
        overtake them."""
        self.holds.add(hold)

    def let_go(self, hold: Hold) -> None:
        self.holds.discard(hold)
        self._release()

    def _release(self) -> None:
        for end in list(self.ends):
            end.release()

    def connect(self, end: End, host: str, port: int, connected: Callable[[int], None]) -> None:
        """Calls with 0 or an error number, as the end's own node."""
        context = context_of(end.node)
        there = end.node.host if end.node is not None else "?"

        def arrive() -> None:
            if (there, host) in self.cuts or (host, there) in self.cuts:
                self.loop.call_later(0.5, arrive)  # the system sends its SYN again
                return
            listening = self.listeners.get((host, port))
            if listening is None or listening.node.dead:
                self.loop.call_at(self.loop.now_s, connected, errno.ECONNREFUSED, context=context)
                return
            other = End(self, listening.node, host)
            other.peer, end.peer = end, other
            other.peer_host, end.peer_host = there, host
            other.is_open = end.is_open = end._is_client = True
            listening.arrived(other)
            self.loop.call_later(self.delay_s(host, there), connected, 0, context=context)

        self.loop.call_later(self.delay_s(there, host), arrive, context=context_of(None))

    def died(self, node: Node, vanished: bool) -> None:
        """The connections of a process end with it. Its host says so to the other ends, unless it is gone as well."""
        for key in [key for key, each in self.listeners.items() if each.node is node]:
            del self.listeners[key]
        for end in [end for end in self.ends if end.node is node]:
            if not vanished:
                end.send_end()
            end.is_open = False
            self.ends.remove(end)

    def drop_one(self, host: str, one_side: bool = False) -> bool:
        """Reset a connection of a host. `one_side`: the other end does not hear of it, and is half open."""
        found = [end for end in self.ends if end.is_open and end.peer is not None and host in (end.host, end.peer_host)]
        if not found:
            return False
        end = self.loop.random.choice(found)
        end.hear_end()
        if end.peer is not None and not one_side:
            end.peer.hear_end()
        return True


class End:
    """One end of a connection. `on_data` and `on_end` run as steps of its node."""

    def __init__(self, network: Network, node: Node | None, host: str) -> None:
        self.network = network
        self.node = node
        self.host = host
        self.peer: End | None = None
        self.peer_host = "?"
        self.is_open = False
        self.inbox: deque[bytes] = deque()
        self.ended = False
        self.on_stir: Callable[[], None] = lambda: None
        self._free_s = 0.0  # when what was sent last arrives
        self._held: deque[bytes | None] = deque()
        self._api = -1  # of the last request that this end, a client's, has sent
        self._is_client = False
        self._context = context_of(node)
        network.ends.append(self)

    def send(self, data: bytes) -> None:
        if self.is_open:
            self._carry(data)

    def send_end(self) -> None:
        if self.is_open:
            self._carry(None)

    def close(self) -> None:
        self.send_end()
        self.is_open = False
        if self in self.network.ends and not self._held:
            self.network.ends.remove(self)

    def _carry(self, data: bytes | None) -> None:
        network = self.network
        if self._is_client and data is not None and len(data) >= 6:
            self._api = int.from_bytes(data[4:6], "big")
        if self._held or self._is_stopped():
            self._held.append(data)
            return
        loop = network.loop
        at_s = max(loop.now_s + network.delay_s(self.host, self.peer_host), self._free_s + 1e-7)
        self._free_s = at_s
        loop.call_at(at_s, self._arrive, data, context=context_of(None))

    def _is_stopped(self) -> bool:
        network = self.network
        if (self.host, self.peer_host) in network.cuts:
            return True
        if not network.holds:
            return False
        if self._is_client:
            return (self.host, self.peer_host, self._api, False) in network.holds
        return self.peer is not None and (self.peer_host, self.host, self.peer._api, True) in network.holds

    def release(self) -> None:
        if self._held and not self._is_stopped():
            waiting, self._held = self._held, deque()
            for data in waiting:
                self._carry(data)

    def _arrive(self, data: bytes | None) -> None:
        if self._held or (self.host, self.peer_host) in self.network.cuts:
            self._held.append(data)  # the cut came while it was on its way
            return
        peer = self.peer
        if peer is None or not peer.is_open:
            return
        loop = self.network.loop
        size = "end" if data is None else f"{len(data)} {zlib.crc32(data):08x}"
        loop.trace.add(loop.now_s, "net", f"{self.host}>{peer.host} {size}")
        if data is None:
            peer.hear_end()
        else:
            peer.inbox.append(data)
            peer.stir()

    def hear_end(self) -> None:
        self.ended = True
        self.stir()

    def stir(self) -> None:
        self.network.loop.call_soon(self.on_stir, context=self._context)


class Listening:
    """A listening socket, as `network.acceptor` uses one."""

    def __init__(self, network: Network, node: Node, host: str, port: int) -> None:
        self.network = network
        self.node = node
        self.address = (host, port)
        self._backlog: deque[End] = deque()
        self._waiter: asyncio.Future[None] | None = None
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

    async def wait(self) -> None:
        while not self._backlog:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def arrived(self, end: End) -> None:
        self._backlog.append(end)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

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
    def _is_readable(self) -> bool:
        return self._reader[0] is not None and (bool(self._end.inbox) or self._end.ended)

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
