"""What a simulation puts in place of the clock, chance and sockets, for the whole process.

`install` must run before anything of ixion is imported: many modules take a clock as the default of an argument. All
that is replaced is in this file. Outside of a run the real things are called.
"""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from devtools.sim.loop import SimLoop
    from devtools.sim.net import Network

EPOCH_S: Final = 1_800_000_000.0  # the wall clock at virtual time 0


class Running:
    """The run of this process, if there is one."""

    loop: SimLoop | None = None
    network: Network | None = None
    chance: random.Random | None = None


_real_monotonic_ns = time.monotonic_ns
_real_time_ns = time.time_ns
_real_urandom = os.urandom


def monotonic_ns() -> int:
    loop = Running.loop
    return _real_monotonic_ns() if loop is None else int(loop.now_s * 1e9)


def time_ns() -> int:
    loop = Running.loop
    if loop is None:
        return _real_time_ns()
    from devtools.sim.loop import NODE

    node = NODE.get()
    off_s = 0.0 if node is None else node.clock_off_s(loop.now_s)
    return int((EPOCH_S + loop.now_s + off_s) * 1e9)


def urandom(size: int) -> bytes:
    return _real_urandom(size) if Running.chance is None else Running.chance.randbytes(size)


def install() -> None:
    time.monotonic_ns = monotonic_ns
    time.monotonic = lambda: monotonic_ns() / 1e9
    time.perf_counter_ns = monotonic_ns
    time.perf_counter = lambda: monotonic_ns() / 1e9
    time.time_ns = time_ns
    time.time = lambda: time_ns() / 1e9
    os.urandom = urandom


def connect_ixion() -> None:
    """Sockets of ixion's modules, once these can be imported."""
    import types

    import ixion.broker.log.disk_guard
    import ixion.broker.network.acceptor
    import ixion.broker.startup.preflight
    import ixion.clients.line
    from devtools.sim.disk import space_of
    from devtools.sim.loop import NODE
    from devtools.sim.sockets import ClientSocket, Listening
    from ixion.clients.dial import refused

    def create_server(address: tuple[str, int], **_: object) -> Listening:
        node = NODE.get()
        assert node is not None
        assert Running.network is not None
        return Listening(Running.network, node, *address)

    class Dial:
        def __init__(self, address: Any, _places: object = None) -> None:
            assert Running.network is not None
            assert Running.loop is not None
            self.address = address
            self.socket = ClientSocket(Running.network, Running.loop, address.host, address.port)

        def advance(self) -> bool:
            code = self.socket.code
            if code is None:
                return False
            if code:
                self.socket.close()
                raise refused(self.address, code)
            return True

    sockets = types.SimpleNamespace(
        create_server=create_server, AF_INET=2, AF_INET6=10, IPPROTO_TCP=6, TCP_NODELAY=1, SOL_SOCKET=1, SO_KEEPALIVE=9
    )
    places: list[tuple[Any, str, Any]] = [
        (ixion.broker.network.acceptor, "socket", sockets),
        (ixion.clients.line, "Dial", Dial),
        (ixion.broker.startup.preflight, "check_port", lambda _: None),
        (ixion.broker.log.disk_guard, "os", types.SimpleNamespace(statvfs=space_of)),
    ]
    for module, name, instead in places:
        setattr(module, name, instead)
