"""A broker of a `Cluster`: the in-process broker, which can be paused and cut off from other members."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Self, TypeVar

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.parts import Options
from ixion.broker.startup.process import loop_factory
from ixion.testing.broker import PATIENCE_S, Broker
from ixion.testing.shared_tree import SharedTree

T = TypeVar("T")


class Cuts:
    """The pairs of brokers that cannot reach each other, and the connections to break between them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cut: set[frozenset[int]] = set()
        self._ports: dict[int, int] = {}  # port -> broker id
        self._open: list[tuple[frozenset[int], asyncio.AbstractEventLoop, Any]] = []

    def at(self, port: int, broker_id: int) -> None:
        with self._lock:
            self._ports = {known: broker for known, broker in self._ports.items() if broker != broker_id}
            self._ports[port] = broker_id

    def cut(self, one: int, other: int) -> None:
        pair = frozenset((one, other))
        with self._lock:
            self._cut.add(pair)
            gone = [entry for entry in self._open if entry[0] == pair]
            self._open = [entry for entry in self._open if entry[0] != pair]
        for _, loop, transport in gone:
            try:
                loop.call_soon_threadsafe(transport.abort)
            except RuntimeError:
                pass  # that broker has ended, with its connections

    def heal(self) -> None:
        with self._lock:
            self._cut.clear()

    def check(self, one: int, port: int) -> None:
        """ConnectionRefusedError if the broker at the port cannot be reached."""
        with self._lock:
            if frozenset((one, self._ports.get(port, -1))) in self._cut:
                raise ConnectionRefusedError(f"cut off from port {port}")

    def opened(self, one: int, port: int, loop: asyncio.AbstractEventLoop, transport: Any) -> None:
        with self._lock:
            self._open = [entry for entry in self._open if not entry[2].is_closing()]
            pair = frozenset((one, self._ports.get(port, -1)))
            if pair not in self._cut:
                self._open.append((pair, loop, transport))
                return
        transport.abort()


class Member(Broker):
    def __init__(
        self, broker_id: int, settings: Mapping[str, Any], data: str, tree: SharedTree, cuts: Cuts, metrics: bool
    ) -> None:
        super().__init__({"broker.id": broker_id, **settings}, data=data, metrics=metrics)
        self.broker_id = broker_id
        self._tree = tree
        self._cuts = cuts
        self._paused: threading.Event | None = None

    def start(self) -> Self:
        super().start()
        _, _, port = self.bootstrap.rpartition(":")
        self._cuts.at(int(port), self.broker_id)
        return self

    @property
    def paused(self) -> bool:
        return self._paused is not None

    def pause(self) -> None:
        """Freeze the event loop of the broker; returns when it is frozen."""
        loop, _ = self._running()
        if self._paused is not None:
            return
        stands = threading.Event()
        self._paused = go_on = threading.Event()

        def stand() -> None:
            stands.set()
            go_on.wait()

        loop.call_soon_threadsafe(stand)
        if not stands.wait(PATIENCE_S):
            self._paused = None
            go_on.set()  # in case the loop gets there later
            raise TimeoutError(f"broker {self.broker_id} did not stand still within {PATIENCE_S:g} s: {self._where()}")

    def resume(self) -> None:
        go_on, self._paused = self._paused, None
        if go_on is not None:
            go_on.set()

    def call(self, work: Callable[[RealBroker], Awaitable[T]]) -> T:
        if self._paused is not None:
            raise RuntimeError(f"broker {self.broker_id} is paused; resume() it first")
        return super().call(work)

    def _leave(self, *, cleanly: bool) -> None:
        self.resume()
        super()._leave(cleanly=cleanly)

    def create_topic(self, name: str, partitions: int = 1, *, replication: int = 1, **config: Any) -> None:
        self._create_topic(name, partitions, replication, config)

    def _options(self) -> Options:
        return Options(
            allow_remote=True,
            pages=super()._options().pages,
            open_session=partial(self._tree.open_session, self.broker_id),
        )

    def _loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        return lambda: _with_cuts(loop_factory(), self.broker_id, self._cuts)


def _with_cuts(make: Callable[[], asyncio.AbstractEventLoop], broker_id: int, cuts: Cuts) -> asyncio.AbstractEventLoop:
    """A loop whose connections to other members can be cut. Only brokers open connections on it."""
    base: Any = make

    class CutLoop(base):  # type: ignore[misc]
        async def create_connection(self, protocol: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
            cuts.check(broker_id, port)
            made = await super().create_connection(protocol, host, port, **options)
            cuts.opened(broker_id, port, self, made[0])
            return made

    loop: asyncio.AbstractEventLoop = CutLoop()
    return loop
