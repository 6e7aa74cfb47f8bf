"""Serves a metadata tree with ZooKeeper's client protocol: one connection as a state machine without I/O.

    connection = Connection(keeper, send, hang_up)
    connection.received(data)        responses and events go to `send`, in the order of the changes

**Order.** A request is executed when its bytes are read, and its response is written before the next request is read.
An event is written when the change is made: before any response that could show the change, as in ZooKeeper. This holds
because nothing here is asynchronous; the process that serves a tree does nothing else, and may wait for its disk.

**Sessions** outlive their connections. A client that reconnects with the id and the password of its session resumes it,
and its older connection is closed. A session expires if nothing was heard of it for its timeout (`Keeper.tick`). After
a restart of this process all earlier sessions have expired; clients learn that when they reconnect.

**Watches** live as long as the connection: persistent ones (ours) and one-shot ones (of other clients).

**Four-letter words** such as `ruok` instead of a connect request get a text response, as from ZooKeeper, and the
connection is closed.

**A client that does not read**: `pause` leaves its requests unread until `resume`, so responses do not pile up. Events
still do, because the tree does not wait for a client; `server.py` bounds them.

These are refused: ACLs other than the open one, containers, nodes with a time to live, recursive watches.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Final

from ixion.broker.metadata.embedded import EmbeddedStore
from ixion.broker.metadata.embedded_session import EmbeddedSession
from ixion.broker.metadata.errors import (
    MetadataError,
    NoNodeError,
    SessionExpiredError,
    StoreUnusableError,
    UnsupportedError,
)
from ixion.broker.metadata.session import Cancel, Event, EventKind
from ixion.broker.metadata.zookeeper import server_packets as packets
from ixion.broker.metadata.zookeeper.jute import JuteError, JuteReader, put_int, put_string, put_strings
from ixion.broker.metadata.zookeeper.packets import AUTH_XID, OK, PING_XID, Op

logger = logging.getLogger(__name__)

SHORTEST_MS: Final = 1_000  # session timeout; a shorter one would expire live clients on a busy machine
LONGEST_MS: Final = 60_000  # session timeout; bounds how long sessions of dead clients count
MAX_REQUEST: Final = (1 << 20) - 1  # as ZooKeeper's jute.maxbuffer
MOST_SESSIONS: Final = 10_000
MOST_WATCHES: Final = 100_000  # per connection; a broker needs about a dozen
MOST_WATCHES_IN_ALL: Final = 200_000
PERSISTENT: Final = 0  # the mode of an add-watch request; 1 is recursive

_DATA: Final = 1  # fires once, when the node is created, set or deleted
_CHILD: Final = 2  # fires once, when the node is deleted, or a child is created or deleted
_ALWAYS: Final = 4
_FIRES: Final = {
    EventKind.CREATED: _DATA | _ALWAYS,
    EventKind.CHANGED: _DATA | _ALWAYS,
    EventKind.DELETED: _DATA | _CHILD | _ALWAYS,
    EventKind.CHILDREN: _CHILD | _ALWAYS,
}
# The types in a remove-watches request: 1 children, 2 data, 3 all.
_REMOVED: Final = {1: _CHILD, 2: _DATA, 3: _DATA | _CHILD | _ALWAYS}


class Keeper:
    """The tree with its sessions, by id."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store: Final = store
        self.watches = 0  # of all connections
        self._held: dict[int, _Held] = {}

    def open(self, timeout_ms: int, connection: Connection) -> _Held | None:
        """None if there are too many sessions."""
        if len(self._held) >= MOST_SESSIONS:
            return None
        inner = self.store.open_session(min(max(timeout_ms, SHORTEST_MS), LONGEST_MS))
        held = self._held[inner.session_id] = _Held(inner, secrets.token_bytes(16), connection)
        inner.on_expired(lambda: self._expired(inner.session_id))
        return held

    def resume(self, session_id: int, password: bytes, connection: Connection) -> _Held | None:
        """None if there is no such session: it has expired."""
        held = self._held.get(session_id)
        if held is None or not hmac.compare_digest(held.password, password):
            return None
        earlier, held.connection = held.connection, connection
        if earlier is not None:
            earlier.drop()
        held.inner.heartbeat()
        return held

    def end(self, held: _Held) -> None:
        self._held.pop(held.inner.session_id, None)
        held.inner.close()

    def tick(self) -> None:
        """End the sessions that were silent for too long. Call it several times per second."""
        self.store.expire_sessions()

    def forgive(self) -> None:
        """Restart the timeouts of all sessions: this process did not run for a while and received nothing."""
        for held in self._held.values():
            held.inner.heartbeat()

    def _expired(self, session_id: int) -> None:
        held = self._held.pop(session_id, None)
        if held is not None and held.connection is not None:
            logger.info("a session expired", extra={"session": f"{session_id:#x}"})
            held.connection.drop()


class _Held:
    __slots__ = ("connection", "inner", "password")

    def __init__(self, inner: EmbeddedSession, password: bytes, connection: Connection) -> None:
        self.inner: Final = inner
        self.password: Final = password
        self.connection: Connection | None = connection


class _Watched:
    __slots__ = ("cancel", "kinds")

    def __init__(self, cancel: Cancel) -> None:
        self.cancel: Final = cancel
        self.kinds = 0


class Connection:
    def __init__(self, keeper: Keeper, send: Callable[[bytes], None], hang_up: Callable[[], None]) -> None:
        """`hang_up` closes the connection after everything sent before."""
        self._keeper = keeper
        self._send = send
        self._hang_up = hang_up
        self._input = bytearray()
        self._held: _Held | None = None
        self._watched: dict[str, _Watched] = {}
        self._over = False
        self._paused = False

    @property
    def greeted(self) -> bool:
        """Whether the connection belongs to a session."""
        return self._held is not None

    def received(self, data: bytes) -> None:
        self._input += data
        position = 0
        try:
            while not self._over and not self._paused and len(self._input) - position >= 4:
                first = bytes(self._input[position : position + 4])
                if self._held is None and first in packets.WORDS:
                    self._send(packets.about(first, self._keeper.store.zxid))
                    self.drop()
                    break
                size = int.from_bytes(first, "big", signed=True)
                if not 0 <= size <= MAX_REQUEST:
                    raise JuteError(f"a request of {size} bytes")
                if len(self._input) - position - 4 < size:
                    break
                packet = bytes(self._input[position + 4 : position + 4 + size])
                position += 4 + size
                self._take(packet)
        except JuteError as error:
            logger.warning("a client of the tree sent bytes that are not ZooKeeper's protocol: %s", error)
            self.drop()
        except SessionExpiredError:
            self.drop()  # in the middle of a request; the client learns that when it reconnects
        del self._input[:position]

    def pause(self) -> None:
        """Execute no more requests until `resume`: the client does not read the responses."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.received(b"")

    def drop(self) -> None:
        """Close the connection; the session stays until it expires."""
        if not self._over:
            self.lost()
            self._hang_up()

    def lost(self) -> None:
        """The connection is closed."""
        self._over = True
        self._keeper.watches -= len(self._watched)
        for watched in self._watched.values():
            watched.cancel()
        self._watched.clear()
        if self._held is not None and self._held.connection is self:
            self._held.connection = None

    # Inside.

    def _take(self, packet: bytes) -> None:
        if self._held is None:
            self._greet(packets.read_hello(packet))
            return
        reader = JuteReader(packet)
        xid, op = reader.read_int(), reader.read_int()
        self._held.inner.heartbeat()
        code, body = OK, b""
        try:
            if xid in (PING_XID, AUTH_XID) or op == Op.PING:
                pass  # all nodes have the open ACL, so every login is accepted
            elif op == Op.CLOSE:
                self._keeper.end(self._held)
            elif op == Op.MULTI:
                body = self._multi(packets.read_multi(reader))
            else:
                body = self._carry_out(op, reader)
        except SessionExpiredError:
            raise
        except MetadataError as error:
            code = packets.code_for(error)
        except StoreUnusableError as error:
            logger.error("the tree could not be read or changed: %s", error)
            code = packets.SYSTEM_ERROR
        self._answer(xid, code, body)
        if op == Op.CLOSE:
            self.drop()

    def _answer(self, xid: int, code: int, body: bytes) -> None:
        self._send(packets.answer(xid, self._keeper.store.zxid, code, body))

    def _greet(self, hello: packets.Hello) -> None:
        if hello.last_zxid > self._keeper.store.zxid:
            logger.warning("refused a client that has seen a later version of the tree than this one")
            self.drop()
            return
        if hello.session_id:
            held = self._keeper.resume(hello.session_id, hello.password, self)
        else:
            held = self._keeper.open(hello.timeout_ms, self)
            if held is None:
                logger.warning("refused a session: there are %d already", MOST_SESSIONS)
        if held is None:
            if hello.session_id:
                self._send(packets.welcome(0, 0, bytes(16)))
            self.drop()
            return
        self._held = held
        self._send(packets.welcome(held.inner.timeout_ms, held.inner.session_id, held.password))

    def _carry_out(self, op: int, reader: JuteReader) -> bytes:
        assert self._held is not None
        session = self._held.inner
        match op:
            case Op.CREATE | Op.CREATE_1:
                wish = packets.read_create(reader)
                (made,) = session.multi([wish])
                assert isinstance(made, str)
                stat = session.exists(made) if op == Op.CREATE else None
                return put_string(made) + (packets.put_stat(stat, len(wish.data)) if stat is not None else b"")
            case Op.SET:
                wanted = packets.read_set(reader)
                return packets.put_stat(session.set(wanted.path, wanted.data, wanted.version), len(wanted.data))
            case Op.DELETE:
                gone = packets.read_delete(reader)
                session.delete(gone.path, gone.version)
                return b""
            case Op.EXISTS | Op.GET | Op.CHILDREN | Op.CHILDREN_2:
                return self._read(op, reader.string(), reader.read_bool())
            case Op.GET_ACL:
                node = session.get(reader.string())
                return packets.ACCESS_LIST + packets.put_stat(node.stat, len(node.data))
            case Op.SYNC:
                return put_string(reader.string())
            case Op.ADD_WATCH:
                path, mode = reader.string(), reader.read_int()
                if mode != PERSISTENT:
                    raise UnsupportedError(path, "recursive watches are not supported")
                self._watch(path, _ALWAYS)
                return put_int(OK)
            case Op.REMOVE_WATCHES:
                self._unwatch(reader.string(), _REMOVED.get(reader.read_int(), 0))
                return b""
            case Op.SET_WATCHES | Op.SET_WATCHES_2:
                self._watch_again(reader)
                return b""
        raise UnsupportedError("/", f"requests of type {op} are not supported")

    def _read(self, op: int, path: str, watch: bool) -> bytes:
        """As in ZooKeeper, only `exists` sets a watch on a missing node."""
        assert self._held is not None
        session = self._held.inner
        if op == Op.EXISTS:
            stat = session.exists(path)
            if watch:
                self._watch(path, _DATA)
            if stat is None:
                raise NoNodeError(path)
            return packets.put_stat(stat, len(session.get(path).data))
        if op == Op.GET:
            node = session.get(path)
            body = packets.put_node(node.data, node.stat)
        else:
            body = put_strings(session.children(path))
            if op == Op.CHILDREN_2:
                node = session.get(path)
                body += packets.put_stat(node.stat, len(node.data))
        if watch:
            self._watch(path, _DATA if op == Op.GET else _CHILD)
        return body

    def _multi(self, multi: packets.Multi) -> bytes:
        assert self._held is not None
        session = self._held.inner
        try:
            if multi.fault is not None:
                raise multi.fault
            results = session.multi(multi.operations)
        except SessionExpiredError:
            raise
        except MetadataError as error:
            return packets.put_refused(len(multi.operations), error.operation, packets.code_for(error))
        made = {path: session.exists(path) for path in results if isinstance(path, str)}
        return packets.put_results(multi, results, {path: stat for path, stat in made.items() if stat is not None})

    # Watches.

    def _watch(self, path: str, kind: int) -> None:
        assert self._held is not None
        watched = self._watched.get(path)
        if watched is None:
            if len(self._watched) >= MOST_WATCHES or self._keeper.watches >= MOST_WATCHES_IN_ALL:
                raise UnsupportedError(path, f"there are {self._keeper.watches} watches already")
            watched = self._watched[path] = _Watched(self._held.inner.watch(path, self._on_event))
            self._keeper.watches += 1
        watched.kinds |= kind

    def _unwatch(self, path: str, kinds: int) -> None:
        watched = self._watched.get(path)
        if watched is not None:
            watched.kinds &= ~kinds
            if not watched.kinds:
                watched.cancel()
                del self._watched[path]
                self._keeper.watches -= 1

    def _on_event(self, event: Event) -> None:
        watched = self._watched.get(event.path)
        if watched is None or not watched.kinds & _FIRES[event.kind]:
            return
        self._send(packets.event(event.kind, event.path))
        self._unwatch(event.path, _FIRES[event.kind] & ~_ALWAYS)

    def _watch_again(self, reader: JuteReader) -> None:
        """Add the watches of an earlier connection again. Data watches fire at once if the node has changed since.
        Child watches always fire, because the tree does not store when children changed."""
        assert self._held is not None
        session = self._held.inner
        seen = reader.read_long()
        data, missing, children = reader.strings(), reader.strings(), reader.strings()
        always = reader.strings() if reader.left else []
        for path in data:
            stat = session.exists(path)
            if stat is not None and stat.modified_zxid <= seen:
                self._watch(path, _DATA)
            else:
                self._send(packets.event(EventKind.DELETED if stat is None else EventKind.CHANGED, path))
        for path in missing:
            if session.exists(path) is None:
                self._watch(path, _DATA)
            else:
                self._send(packets.event(EventKind.CREATED, path))
        for path in children:
            gone = session.exists(path) is None
            self._send(packets.event(EventKind.DELETED if gone else EventKind.CHILDREN, path))
        for path in always:
            self._watch(path, _ALWAYS)
