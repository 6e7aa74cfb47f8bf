"""A network in memory: connections between hosts, whose bytes take time, keep their order, and can be held up.

Each piece of data takes a random time; within one direction of a connection none overtakes another, between
connections they do. A cut between two hosts holds everything up until it is healed, as TCP does by sending again; a
connection attempt meanwhile hangs. When a process dies, its host resets the connections; when a whole host goes
(`vanish`), the other ends get no reset: they are half open until a timeout.
"""

from __future__ import annotations

import errno
import zlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from devtools.sim.loop import Node, SimLoop, context_of

if TYPE_CHECKING:
    from devtools.sim.sockets import Listening

USUAL_S: Final = (0.0001, 0.002)
SLOW_S: Final = (0.02, 0.3)
NOBODY: Final = context_of(None)  # for steps of no node
Pair = tuple[str, str]
Hold = tuple[str, str, int, bool]  # client, server, API key; whether answers are held, else the requests


class Network:
    def __init__(self, loop: SimLoop, folder: str) -> None:
        self.loop = loop
        self.folder = folder.encode()
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
            if not end.holds_data:  # what it has sent is on its way all the same
                self.ends.remove(end)

    def drop_one(self, host: str, one_side: bool = False) -> bool:
        """Reset a connection of a host. `one_side`: the other end gets no reset, and is half open."""
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

    @property
    def holds_data(self) -> bool:
        return bool(self._held)

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
        loop.call_at(at_s, self._arrive, data, context=NOBODY)

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
            if not self.is_open and not self._held and self in self.network.ends:
                self.network.ends.remove(self)

    def _arrive(self, data: bytes | None) -> None:
        if self._held or (self.host, self.peer_host) in self.network.cuts:
            self._held.append(data)  # the cut came while it was on its way
            return
        peer = self.peer
        if peer is None or not peer.is_open:
            return
        loop = self.network.loop
        # An error message may name the folder of this run, which is another one in every run.
        size = "end" if data is None else f"{len(data)} {zlib.crc32(data.replace(self.network.folder, b'')):08x}"
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
