"""The metadata tree of a simulation, with a network between it and each broker.

The tree is the embedded engine in memory. A session behaves as ZooKeeper's: its calls arrive and are answered in their
order; while its broker is cut off they wait, and a write whose answer was lost fails with ConnectionLostError; events
missed meanwhile become one RESUMED for each watch; a broker that is cut off or stands still for longer than its timeout
has expired, and learns of it when it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from devtools.sim.loop import Node, SimLoop, context_of
from devtools.sim.net import Network
from devtools.sim.patches import EPOCH_S
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.embedded_session import EmbeddedSession
from ixion.broker.metadata.errors import ConnectionLostError, MetadataError, SessionExpiredError
from ixion.broker.metadata.node import ANY_VERSION, Operation, Result, Stat
from ixion.broker.metadata.node import Node as TreeNode
from ixion.broker.metadata.session import Cancel, Event, EventKind, Watcher

T = TypeVar("T")

HOST: Final = "tree"
LOOK_S: Final = 0.2


class SimTree:
    def __init__(self, loop: SimLoop, network: Network) -> None:
        self.loop = loop
        self.network = network
        self.store = EmbeddedStore(
            IN_MEMORY, clock_ms=lambda: int(loop.now_s * 1_000), now_ms=lambda: int((EPOCH_S + loop.now_s) * 1_000)
        )
        self.own = self.store.open_session(1 << 40)
        self.sessions: list[SimSession] = []
        self.late_writes: dict[str, float] = {}  # host -> seconds that its writes need in addition
        self._look()

    def _look(self) -> None:
        self.store.expire_sessions()
        self.loop.call_later(LOOK_S, self._look, context=context_of(None))

    async def open_session(self, node: Node, timeout_ms: int) -> SimSession:
        while self.is_cut(node):
            await asyncio.sleep(0.1)
        session = SimSession(self, node, self.store.open_session(timeout_ms), timeout_ms)
        self.sessions.append(session)
        return session

    def is_cut(self, node: Node) -> bool:
        cuts = self.network.cuts
        return (node.host, HOST) in cuts or (HOST, node.host) in cuts

    def cut(self, host: str) -> None:
        self.network.cut(host, HOST)
        for session in self.sessions:
            if session.node.host == host:
                session.lost += 1

    def heal(self, host: str) -> None:
        self.network.heal(host, HOST)
        for session in self.sessions:
            if session.node.host == host and not session.node.dead:
                session.back()

    def heal_all(self) -> None:
        self.late_writes.clear()
        for host in sorted({one for one, other in self.network.cuts if other == HOST}):
            self.heal(host)

    def expire(self, host: str) -> None:
        for session in self.sessions:
            if session.node.host == host:
                self.store.expire(session.inner)


class SimSession:
    def __init__(self, tree: SimTree, node: Node, inner: EmbeddedSession, timeout_ms: int) -> None:
        self.node = node
        self.inner = inner
        self.lost = 0  # connections
        self._tree = tree
        self._loop = tree.loop
        self._timeout_ms = timeout_ms
        self._there_s = 0.0  # when the last request arrives
        self._back_s = 0.0  # when the last answer or event arrives
        self._watchers: list[tuple[str, Watcher]] = []
        self._expired: list[Callable[[], None]] = []
        self._missed = False
        self._is_expired = False
        self._waiting: list[asyncio.Future[None]] = []
        self._context = context_of(node)
        inner.on_expired(self._expire)
        self._loop.call_later(timeout_ms / 3_000, self._beat, context=self._context)

    @property
    def session_id(self) -> int:
        return self.inner.session_id

    # Calls.

    async def _call(self, path: str, work: Callable[[], T], *, writes: bool) -> T:
        tree, loop = self._tree, self._loop
        while True:
            while tree.is_cut(self.node):
                back: asyncio.Future[None] = loop.create_future()
                self._waiting.append(back)
                await back
            lost = self.lost
            late_s = tree.late_writes.get(self.node.host, 0.0) if writes else 0.0
            self._there_s = max(loop.now_s + self._delay_s() + late_s, self._there_s + 1e-7)
            await self._until(self._there_s)
            if lost != self.lost:
                continue  # it did not arrive
            error: MetadataError | None = None
            result: Any = None
            try:
                result = work()
            except MetadataError as refused:
                error = refused
            self._back_s = max(loop.now_s + self._answer_s(), self._back_s + 1e-7)
            await self._until(self._back_s)
            if lost != self.lost and not isinstance(error, SessionExpiredError):
                if writes:
                    raise ConnectionLostError(path, "cut off")
                continue
            if error is not None:
                raise error
            return result  # type: ignore[no-any-return]

    def _delay_s(self) -> float:
        return self._tree.network.delay_s(self.node.host, HOST)

    def _answer_s(self) -> float:
        return self._tree.network.delay_s(HOST, self.node.host)

    async def _until(self, at_s: float) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_at(at_s, lambda: None if done.done() else done.set_result(None))
        await done

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        return await self._call(
            path, lambda: self.inner.create(path, data, ephemeral=ephemeral, sequential=sequential), writes=True
        )

    async def get(self, path: str) -> TreeNode:
        return await self._call(path, lambda: self.inner.get(path), writes=False)

    async def exists(self, path: str) -> Stat | None:
        return await self._call(path, lambda: self.inner.exists(path), writes=False)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        return await self._call(path, lambda: self.inner.set(path, data, version), writes=True)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._call(path, lambda: self.inner.delete(path, version), writes=True)

    async def children(self, path: str) -> list[str]:
        return await self._call(path, lambda: self.inner.children(path), writes=False)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return await self._call(operations[0].path, lambda: self.inner.multi(operations), writes=True)

    async def close(self) -> None:
        if not self._is_expired:
            try:
                await self._call("/", self.inner.close, writes=False)
            except SessionExpiredError:
                pass

    # Events.

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        entry = (path, watcher)
        if self._is_expired:
            raise SessionExpiredError(path, "the session is over")
        self._watchers.append(entry)

        def deliver(event: Event) -> None:
            if entry not in self._watchers:
                return
            if self._tree.is_cut(self.node):
                self._missed = True
            else:
                watcher(event)

        def fire(event: Event) -> None:
            self._back_s = max(self._loop.now_s + self._answer_s(), self._back_s + 1e-7)
            self._loop.call_at(self._back_s, deliver, event, context=self._context)

        cancel_inner = self.inner.watch(path, fire)

        def cancel() -> None:
            if entry in self._watchers:
                self._watchers.remove(entry)
            cancel_inner()

        return cancel

    @property
    def is_leased(self) -> bool:
        return not self._is_expired

    def on_expired(self, callback: Callable[[], None]) -> None:
        if self._is_expired:
            raise SessionExpiredError("/", "the session is over")
        self._expired.append(callback)

    def _expire(self) -> None:
        self._is_expired = True
        loop = self._loop
        loop.trace.add(loop.now_s, "note", f"session of {self.node} expired")
        if not self._tree.is_cut(self.node):
            self._tell_expired()

    def _tell_expired(self) -> None:
        callbacks, self._expired = self._expired, []
        for callback in callbacks:
            self._loop.call_later(self._delay_s(), callback, context=self._context)

    def back(self) -> None:
        """The broker reaches the tree again."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
        if self._is_expired:
            self._tell_expired()
        elif self.lost or self._missed:
            self._missed = False
            for path, watcher in list(self._watchers):
                self._loop.call_later(self._delay_s(), watcher, Event(EventKind.RESUMED, path), context=self._context)

    def _beat(self) -> None:
        """A step of the broker: it does not come while that stands still."""
        if self._is_expired:
            return
        if not self._tree.is_cut(self.node):
            try:
                self.inner.heartbeat()
            except SessionExpiredError:
                return
        self._loop.call_later(self._timeout_ms / 3_000, self._beat, context=self._context)
