"""The embedded engine on an event loop, with the interface of `ixion.broker.metadata.session`.

A change waits for the disk, so changes run on a separate thread, one after the other. A read is done at once, unless a
change is running: that locks the tree, so the read queues behind it. A tree in memory needs no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.embedded_session import EmbeddedSession
from ixion.broker.metadata.errors import SessionExpiredError, StoreUnusableError
from ixion.broker.metadata.node import ANY_VERSION, Node, Operation, Result, Stat
from ixion.broker.metadata.session import Cancel, Event, Watcher
from ixion.language.model.pools import MakePool, threads

T = TypeVar("T")

READS_A_TURN: Final = 200  # reads of 20 to 50 µs each before the loop gets its turn


class EmbeddedEngine:
    """Owns the store. Make and use it on one loop."""

    def __init__(self, store: EmbeddedStore, make_pool: MakePool = threads) -> None:
        self.store = store
        self.loop = asyncio.get_running_loop()
        self._thread = None if store.file == IN_MEMORY else make_pool(1, "metadata")
        self._under_way = 0  # changes that the thread has not finished
        self._reads = 0
        self._sessions: list[EmbeddedSession] = []

    def open_session(self, timeout_ms: int) -> LoopSession:
        session = self.store.open_session(timeout_ms)
        self._sessions.append(session)
        return LoopSession(self, session)

    def beat(self) -> None:
        """Send a heartbeat for all sessions. On any thread."""
        for session in self._sessions:
            with suppress(SessionExpiredError):  # closed
                session.heartbeat()
        self.store.expire_sessions()

    async def read(self, work: Callable[[], T]) -> T:
        if self._under_way:
            return await self.change(work)
        self._reads += 1
        if self._reads % READS_A_TURN == 0:
            await asyncio.sleep(0)
        return work()

    async def change(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            return work()
        try:
            future = self.loop.run_in_executor(self._thread, work)
        except RuntimeError as error:  # the thread has ended
            raise StoreUnusableError(self.store.file, "it was closed") from error
        self._under_way += 1
        future.add_done_callback(self._came_back)
        return await future

    def _came_back(self, _: object) -> None:
        self._under_way -= 1

    def close(self) -> None:
        """Waits for the running change. A second call does nothing."""
        self._stop_thread()
        self.store.close()

    def abandon(self) -> None:
        self._stop_thread()
        self.store.abandon()

    def _stop_thread(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=True)


class LoopSession:
    """A session of the embedded engine, each of whose calls is awaited."""

    def __init__(self, engine: EmbeddedEngine, inner: EmbeddedSession) -> None:
        self._engine = engine
        self._inner = inner

    @property
    def session_id(self) -> int:
        return self._inner.session_id

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        create = partial(self._inner.create, path, data, ephemeral=ephemeral, sequential=sequential)
        return await self._engine.change(create)

    async def get(self, path: str) -> Node:
        return await self._engine.read(partial(self._inner.get, path))

    async def exists(self, path: str) -> Stat | None:
        return await self._engine.read(partial(self._inner.exists, path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        return await self._engine.change(partial(self._inner.set, path, data, version))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._engine.change(partial(self._inner.delete, path, version))

    async def children(self, path: str) -> list[str]:
        return await self._engine.read(partial(self._inner.children, path))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return await self._engine.change(partial(self._inner.multi, operations))

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        cancelled = False

        def tell(event: Event) -> None:
            if not cancelled:
                watcher(event)

        cancel_inner = self._inner.watch(path, lambda event: self._call_on_loop(partial(tell, event)))

        def cancel() -> None:
            nonlocal cancelled
            cancelled = True
            cancel_inner()

        return cancel

    @property
    def is_leased(self) -> bool:
        return self._inner.is_leased

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._inner.on_expired(lambda: self._call_on_loop(callback))

    async def close(self) -> None:
        await self._engine.change(self._inner.close)

    def _call_on_loop(self, callback: Callable[[], None]) -> None:
        try:
            self._engine.loop.call_soon_threadsafe(callback)
        except RuntimeError:
            pass  # the loop is closed, so no caller waits for the result
