"""A session with ZooKeeper on an event loop: the machine of `machine.py` with a socket and a timer, with the interface
of `ixion.broker.metadata.session`.

    session = await open_session("zk1:2181,zk2:2181/kafka", 18_000)
    await session.create("/brokers/ids/1", registration, ephemeral=True)

Requests of one turn of the loop are sent in one write. Callbacks of watches run on the loop.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from ixion.broker.metadata.errors import (
    InvalidPathError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    StoreUnusableError,
    TooLargeError,
)
from ixion.broker.metadata.node import ANY_VERSION, Create, Node, Operation, Result, Stat
from ixion.broker.metadata.path_rules import ROOT, check_path
from ixion.broker.metadata.session import Cancel, Event, Watcher
from ixion.broker.metadata.zookeeper import packets
from ixion.broker.metadata.zookeeper.ensemble import Ensemble, parse_connect
from ixion.broker.metadata.zookeeper.jute import JuteReader
from ixion.broker.metadata.zookeeper.link import CLOSED, Link, let_go
from ixion.broker.metadata.zookeeper.machine import (
    Connect,
    Credentials,
    Disconnect,
    Request,
    SessionMachine,
    State,
    Write,
)
from ixion.broker.metadata.zookeeper.packets import Op, Read
from ixion.language.sasl.exchange import ClientExchange

logger = logging.getLogger(__name__)

T = TypeVar("T")

# ZooKeeper closes the connection if a request is longer than its jute.maxbuffer (1 MiB - 1 by default), and does so
# again at every retry. So we refuse such a request ourselves, at a slightly lower limit.
MAX_REQUEST: Final = (1 << 20) - 1_024
CLOSE_MS: Final = 2_000  # how long to wait for the server to confirm the end of the session


async def open_session(
    connect: str,
    timeout_ms: int,
    *,
    connect_timeout_ms: int | None = None,
    tls: Callable[[], ssl.SSLContext] | None = None,
    auth: tuple[str, bytes] | None = None,
    login: Callable[[], ClientExchange] | None = None,
    secure: bool = False,
) -> ZooKeeperSession:
    """A new session. A missing chroot is created. `StoreUnusableError` if no server accepts us in time. `tls` is called
    for every connection, so that certificates can change, and `login` for the exchange by which SASL proves who we are.
    `secure`: only this identity may change the nodes that it makes."""
    ensemble = parse_connect(connect)
    session = ZooKeeperSession(ensemble, timeout_ms, tls=tls, auth=auth, login=login, secure=secure)
    patience_ms = timeout_ms if connect_timeout_ms is None else connect_timeout_ms
    try:
        async with asyncio.timeout(
            patience_ms / 1_000
        ):  # wait_for would swallow a cancellation that comes with the end
            await session.made()
    except TimeoutError:
        await session.leave()
        raise StoreUnusableError(
            f"ZooKeeper ({ensemble})", why_not(patience_ms, session.last_fault, tls is not None)
        ) from None
    except BaseException:
        await session.leave()
        raise
    return session


def why_not(patience_ms: int, last_fault: str, tls: bool = False) -> str:
    """Why there is no session. A server without a quorum closes connections, even if it serves others read-only."""
    hint = ""
    if last_fault.endswith(CLOSED):
        hint = ", as a server without a quorum does, read-only or not"
        if not tls:
            hint += ", and a port for TLS (zookeeper.ssl.client.enable)"
    return f"no server accepted a session within {patience_ms} ms; the last one tried was {last_fault}{hint}"


class ZooKeeperSession:
    def __init__(
        self,
        ensemble: Ensemble,
        timeout_ms: int,
        *,
        tls: Callable[[], ssl.SSLContext] | None,
        auth: tuple[str, bytes] | None,
        login: Callable[[], ClientExchange] | None = None,
        secure: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._chroot = ensemble.chroot
        self._tls = tls
        self._secure = secure
        servers = list(ensemble.servers)
        random.shuffle(servers)  # so that brokers spread over the ensemble
        self._machine = SessionMachine(
            servers,
            timeout_ms,
            chroot=ensemble.chroot,
            auth=auth,
            login=login,
            jitter=random.random,
            on_event=self._event,
            on_state=self._new_state,
        )
        self._link: Link | None = None
        self._leaving: set[Link] = set()  # dropped links that are not closed yet
        self._told: set[tuple[str, str]] = set()  # faults logged since the last connection
        self._timer: asyncio.TimerHandle | None = None
        self._flush_planned = False
        self._first: asyncio.Future[None] = self._loop.create_future()
        self._watchers: dict[str, list[Watcher]] = {}
        self._expiry_callbacks: list[Callable[[], None]] = []
        self._machine.start(self._now_ms())
        self._flush()

    # The interface `MetadataSession`.

    @property
    def session_id(self) -> int:
        return self._machine.session_id

    @property
    def timeout_ms(self) -> int:
        return self._machine.timeout_ms

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        # The name of a sequential node may be only its number: /a/ becomes /a/0000000000.
        check_path(path + "0" if sequential else path)
        if path == ROOT:
            raise NodeExistsError(path)
        body = packets.create_body(Create(path, data, ephemeral, sequential), self._chroot, self._secure)
        return await self._ask(Op.CREATE, path, body, packets.read_created(self._chroot))

    async def get(self, path: str) -> Node:
        return await self._ask(Op.GET, path, self._path_body(path), packets.read_node, repeatable=True)

    async def exists(self, path: str) -> Stat | None:
        try:
            return await self._ask(Op.EXISTS, path, self._path_body(path), packets.read_stat, repeatable=True)
        except NoNodeError:
            return None

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        body = packets.set_body(self._full(path), data, version)
        return await self._ask(Op.SET, path, body, packets.read_stat, version=version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        full = self._full(path)
        if path == ROOT:
            raise InvalidPathError(path, "the root cannot be deleted")
        await self._ask(Op.DELETE, path, packets.version_body(full, version), packets.read_nothing, version=version)

    async def children(self, path: str) -> list[str]:
        return await self._ask(Op.CHILDREN, path, self._path_body(path), packets.read_names, repeatable=True)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        if not operations:
            self._check_alive(ROOT)
            return []
        for operation in operations:
            numbered = isinstance(operation, Create) and operation.sequential
            check_path(operation.path + "0" if numbered else operation.path)
        body = packets.multi_body(operations, self._chroot, self._secure)
        return await self._ask(Op.MULTI, operations[0].path, body, packets.read_multi(operations, self._chroot))

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        check_path(path)
        self._check_alive(path)
        watchers = self._watchers.setdefault(path, [])
        watchers.append(watcher)
        self._machine.add_watch(self._now_ms(), path)
        self._flush_soon()
        active = True

        def cancel() -> None:
            nonlocal active
            if not active:
                return
            active = False
            watchers.remove(watcher)
            if not watchers and self._watchers.get(path) is watchers:
                del self._watchers[path]
                self._machine.remove_watch(self._now_ms(), path)
                self._flush_soon()

        return cancel

    @property
    def is_leased(self) -> bool:
        return self._machine.is_leased(self._now_ms())

    def on_expired(self, callback: Callable[[], None]) -> None:
        self._expiry_callbacks.append(callback)

    async def close(self) -> None:
        """Waits until ZooKeeper has deleted the ephemeral nodes, at most CLOSE_MS."""
        self._watchers.clear()  # ignore the deletion of our own nodes
        done: asyncio.Future[None] = self._loop.create_future()
        self._machine.close(self._now_ms(), lambda: None if done.done() else done.set_result(None))
        self._flush()
        try:
            async with asyncio.timeout(CLOSE_MS / 1_000):
                await done
        except TimeoutError:
            logger.warning("ZooKeeper did not confirm the end of the session; its nodes are deleted when it expires")
        finally:
            await self.leave()

    # For the owner.

    @property
    def connected(self) -> bool:
        return self._machine.state is State.CONNECTED

    @property
    def credentials(self) -> Credentials:
        return self._machine.credentials

    @property
    def last_fault(self) -> str:
        return self._machine.last_fault

    async def made(self) -> None:
        """Returns when the session and its chroot exist."""
        await asyncio.shield(self._first)
        level = ""
        for name in self._chroot.split("/")[1:]:
            level += f"/{name}"
            try:
                body = packets.create_body(Create(level), "", self._secure)
                await self._ask(Op.CREATE, level, body, packets.read_nothing)
            except NodeExistsError:
                continue

    def abandon(self) -> None:
        """Drop the connection without closing the session, as after a crash: the session is left to expire."""
        self._drop_link(politely=False)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._watchers.clear()
        self._machine.abandon()
        self._machine.take_actions()

    async def leave(self) -> None:
        """Drop the connection without closing the session, and return when no transport of the session is left."""
        self.abandon()
        await let_go(self._leaving)

    # Called by the connection.

    def link_made(self, link: Link) -> None:
        if link is self._link:
            self._machine.connected(self._now_ms())
            self._flush()

    def link_received(self, link: Link, data: bytes) -> None:
        if link is self._link:
            self._machine.received(self._now_ms(), data)
            self._flush()

    def link_lost(self, link: Link, reason: str) -> None:
        if link is self._link:
            self._link = None
            self._machine.lost(self._now_ms(), reason)
            self._flush()

    # Inside.

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1_000)

    def _full(self, path: str) -> str:
        check_path(path)
        return packets.full_path(self._chroot, path)

    def _path_body(self, path: str) -> bytes:
        return packets.path_body(self._full(path))

    def _check_alive(self, path: str) -> None:
        if self._machine.over:
            raise SessionExpiredError(path, f"the session is {self._machine.state.value}")

    async def _ask(
        self,
        op: Op,
        path: str,
        body: bytes,
        read: Callable[[JuteReader], T],
        repeatable: bool = False,
        version: int = -1,
    ) -> T:
        if len(body) > MAX_REQUEST:
            raise TooLargeError(path, f"a request of {len(body)} bytes is too large for ZooKeeper ({MAX_REQUEST})")
        future: asyncio.Future[T] = self._loop.create_future()

        def answer(result: Any, error: BaseException | None) -> None:
            if future.done():
                return  # the caller was cancelled
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        request = Request(op, path, body, _typed(read), answer, repeatable=repeatable, version=version)
        self._machine.submit(self._now_ms(), request)
        self._flush_soon()
        return await future

    def _flush_soon(self) -> None:
        if not self._flush_planned:
            self._flush_planned = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Perform the machine's actions."""
        self._flush_planned = False
        out = bytearray()
        for action in self._machine.take_actions():
            match action:
                case Write():
                    out += action.data
                case Connect():
                    self._tell_fault()
                    out.clear()
                    self._link = Link(self)
                    self._link.begin(action.server.host, action.server.port, None if self._tls is None else self._tls())
                case Disconnect():
                    if self._link is not None and out:
                        self._link.write(bytes(out))
                    self._drop_link(politely=self._machine.state is State.CLOSED)  # the server has answered
                    out.clear()
        if out and self._link is not None:
            self._link.write(bytes(out))
        self._set_timer()

    def _tell_fault(self) -> None:
        """Log why the last attempt failed, each fault once until the next connection. Digits in it do not count."""
        fault = self._fault()
        if fault[1] and fault not in self._told:
            self._told.add(fault)
            logger.warning("cannot reach ZooKeeper, retrying: %s", self.last_fault)

    def _fault(self) -> tuple[str, str]:
        """The last server tried, and why that failed; "" if no attempt has failed yet."""
        server, _, reason = self.last_fault.partition(": ")
        return server, "".join(letter for letter in reason if not letter.isdigit())

    def _drop_link(self, *, politely: bool) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._leaving.add(link)
            link.gone.add_done_callback(lambda _: self._leaving.discard(link))
            link.drop(politely=politely)

    def _set_timer(self) -> None:
        wake_ms = self._machine.wake_ms
        if self._timer is not None:
            if wake_ms is not None and self._timer.when() * 1_000 <= wake_ms:
                return  # the timer fires in time and is set again then
            self._timer.cancel()
            self._timer = None
        if wake_ms is not None:
            self._timer = self._loop.call_at((wake_ms + 1) / 1_000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._machine.wake(self._now_ms())
        self._flush()

    def _event(self, event: Event) -> None:
        for watcher in tuple(self._watchers.get(event.path, ())):
            try:
                watcher(event)
            except Exception:
                logger.exception("a metadata callback failed; the others continue")

    def _new_state(self, state: State) -> None:
        if state is State.CONNECTED and not self._first.done():
            self._first.set_result(None)
        if state is State.CONNECTED:
            self._told.clear()
            logger.info("connected to ZooKeeper at %s, session %#x", self._machine.server, self.session_id)
        elif state is State.CONNECTING:
            logger.warning("the connection to ZooKeeper was lost: %s", self.last_fault)
            self._told.add(self._fault())
        elif state is State.EXPIRED:
            self._watchers.clear()
            for callback in self._expiry_callbacks:
                callback()


def _typed(read: Callable[[JuteReader], T]) -> Read:
    return read
