"""The engines that must keep the contract of `metadata.session`. A further one adds a class and a line below.

The contract is written as plain calls. The engines on a loop are called through `Blocking`, which runs the loop until
the call is done.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from ixion.broker.metadata.embedded import FILE_NAME, IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.embedded_session import EmbeddedSession
from ixion.broker.metadata.errors import SessionExpiredError
from ixion.broker.metadata.node import ANY_VERSION, Node, Operation, Result, Stat
from ixion.broker.metadata.on_loop import EmbeddedEngine
from ixion.broker.metadata.session import Cancel, MetadataSession, Watcher
from ixion.broker.metadata.zookeeper import packets
from ixion.broker.metadata.zookeeper.ensemble import parse_connect
from ixion.broker.metadata.zookeeper.jute import put_int
from ixion.broker.metadata.zookeeper.server import serve_tree
from ixion.broker.metadata.zookeeper.session import ZooKeeperSession, open_session

TIMEOUT_MS = 6_000

T = TypeVar("T")


class Session(Protocol):
    """`MetadataSession` without the awaits."""

    @property
    def session_id(self) -> int: ...

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str: ...

    def get(self, path: str) -> Node: ...

    def exists(self, path: str) -> Stat | None: ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat: ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    def children(self, path: str) -> list[str]: ...

    def multi(self, operations: Sequence[Operation]) -> list[Result]: ...

    def watch(self, path: str, watcher: Watcher) -> Cancel: ...

    @property
    def is_leased(self) -> bool: ...

    def on_expired(self, callback: Callable[[], None]) -> None: ...

    def close(self) -> None: ...


class Engine(Protocol):
    def session(self) -> Session: ...

    def let_expire(self, session: Session) -> None:
        """Makes the store believe that the holder of this session is gone; the others live on."""

    def settle(self) -> None:
        """Returns when every event of the changes made so far has been delivered."""

    def close(self) -> None: ...


class PlainEngine:
    """The embedded engine as it is below the loop."""

    def __init__(self, file: str) -> None:
        self.now_ms = 1_000
        self.store = EmbeddedStore(file, clock_ms=lambda: self.now_ms, now_ms=lambda: 1_700_000_000_000 + self.now_ms)
        self.sessions: list[EmbeddedSession] = []

    def session(self) -> Session:
        self.sessions.append(self.store.open_session(TIMEOUT_MS))
        return self.sessions[-1]

    def let_expire(self, session: Session) -> None:
        self.now_ms += TIMEOUT_MS + 1
        for other in self.sessions:
            if other is not session:
                with suppress(SessionExpiredError):  # closed before
                    other.heartbeat()
        self.store.expire_sessions()

    def settle(self) -> None:
        pass  # this engine delivers before the call that made the change returns

    def close(self) -> None:
        self.store.close()


class Blocking:
    """A session on a loop, for a test that is not. A call made by a callback, on the loop, is only begun."""

    def __init__(self, inner: MetadataSession, loop: asyncio.AbstractEventLoop) -> None:
        self.inner = inner
        self._loop = loop
        self._begun: set[asyncio.Task[Any]] = set()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if not self._loop.is_running():
            return self._loop.run_until_complete(call)
        task = self._loop.create_task(call)
        self._begun.add(task)
        return cast(T, None)

    @property
    def session_id(self) -> int:
        return self.inner.session_id

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        return self._run(self.inner.create(path, data, ephemeral=ephemeral, sequential=sequential))

    def get(self, path: str) -> Node:
        return self._run(self.inner.get(path))

    def exists(self, path: str) -> Stat | None:
        return self._run(self.inner.exists(path))

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        return self._run(self.inner.set(path, data, version))

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._run(self.inner.delete(path, version))

    def children(self, path: str) -> list[str]:
        return self._run(self.inner.children(path))

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        return self._run(self.inner.multi(operations))

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        async def watch() -> Cancel:
            cancel = self.inner.watch(path, watcher)
            await self.inner.exists("/")  # another session cannot overtake the watch any more
            return cancel

        return self._run(watch())

    @property
    def is_leased(self) -> bool:
        return self.inner.is_leased

    def on_expired(self, callback: Callable[[], None]) -> None:
        self.inner.on_expired(callback)

    def close(self) -> None:
        self._run(self.inner.close())


def ask(session: Session, path: str, then: Callable[[Stat | None], None]) -> None:
    """Asks from a callback whether a node exists."""
    if isinstance(session, Blocking):
        asking = asyncio.ensure_future(session.inner.exists(path))
        asking.add_done_callback(lambda done: then(done.result()))
    else:
        then(session.exists(path))


class LoopEngine:
    """The embedded engine on a loop."""

    def __init__(self, file: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.now_ms = 1_000
        self.store = EmbeddedStore(file, clock_ms=lambda: self.now_ms)

        async def make() -> EmbeddedEngine:
            return EmbeddedEngine(self.store)

        self.engine = self.loop.run_until_complete(make())
        self.sessions: list[Blocking] = []

    def session(self) -> Session:
        self.sessions.append(Blocking(self.engine.open_session(TIMEOUT_MS), self.loop))
        return self.sessions[-1]

    def let_expire(self, session: Session) -> None:
        self.now_ms += TIMEOUT_MS + 1
        for other in self.sessions:
            if other is not session:
                with suppress(SessionExpiredError):  # closed before
                    other.exists("/")
        self.store.expire_sessions()

    def settle(self) -> None:
        for _ in range(3):  # a callback may begin a call, whose events follow
            self.loop.run_until_complete(self.engine.change(lambda: None))
            self.loop.run_until_complete(asyncio.sleep(0))

    def close(self) -> None:
        self.engine.close()
        self.loop.close()


class ZooKeeperEngine:
    """Sessions with a ZooKeeper, under a chroot of their own."""

    def __init__(self, connect: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.connect = connect
        self.sessions: list[Blocking] = []

    def open(self) -> ZooKeeperSession:
        return self.loop.run_until_complete(open_session(self.connect, TIMEOUT_MS, connect_timeout_ms=60_000))

    def session(self) -> Session:
        self.sessions.append(Blocking(self.open(), self.loop))
        return self.sessions[-1]

    def let_expire(self, session: Session) -> None:
        assert isinstance(session, Blocking)
        assert isinstance(session.inner, ZooKeeperSession)
        expired = asyncio.Event()
        session.on_expired(expired.set)
        end_from_outside(session.inner, self.connect)
        self.loop.run_until_complete(asyncio.wait_for(expired.wait(), 60))

    def settle(self) -> None:
        """ZooKeeper answers a read after the events of what was done before it."""
        for _ in range(3):
            for session in self.sessions:
                with suppress(SessionExpiredError):
                    session.exists("/")
            self.loop.run_until_complete(asyncio.sleep(0))

    def close(self) -> None:
        for session in self.sessions:
            session.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


class ServedTree:
    """A tree of ours offered by ZooKeeper's protocol, on a loop in a thread of its own."""

    def __init__(self, file: str = IN_MEMORY, port: int = 0) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.server = self.run(serve_tree(EmbeddedStore(file), port))
        self.connect = f"127.0.0.1:{self.server.port}"

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(60)

    def close(self) -> None:
        self.run(self.server.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class ServedEngine(ZooKeeperEngine):
    """Our client with our server."""

    def __init__(self, file: str) -> None:
        self.tree = ServedTree(file)
        super().__init__(f"{self.tree.connect}/contract")

    def close(self) -> None:
        super().close()
        self.tree.close()


def end_from_outside(session: ZooKeeperSession, connect: str) -> None:
    """Ends a session behind its holder's back, by its id and password, as if it had been silent for too long.

    The holder loses its connection by that. It would come back in the middle of it, but its loop stands still.
    """
    server = parse_connect(connect).servers[0]
    known = session.credentials
    with socket.create_connection((server.host, server.port), timeout=60) as connection:
        connection.sendall(packets.connect_request(0, TIMEOUT_MS, known.session_id, known.password))
        connection.sendall(packets.frame(put_int(1) + put_int(packets.Op.CLOSE)))
        while connection.recv(4096):
            pass


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "embedded": lambda directory: PlainEngine(str(directory / FILE_NAME)),
    "in-memory": lambda directory: PlainEngine(IN_MEMORY),
    "embedded-on-loop": lambda directory: LoopEngine(str(directory / FILE_NAME)),
    "in-memory-on-loop": lambda directory: LoopEngine(IN_MEMORY),
    "served": lambda directory: ServedEngine(str(directory / FILE_NAME)),
}
