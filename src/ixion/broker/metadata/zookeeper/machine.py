"""A session with ZooKeeper as a state machine without I/O: events and the time in, actions out.

    machine.start(now)                       -> Connect(server)
    machine.connected(now)                   -> Write(connect request)
    machine.received(now, data)              -> delivers responses and events; Write(waiting requests)
    machine.lost(now, reason)                -> Connect(next server), at once or at `wake_ms`
    machine.submit(now, request)             -> Write(request)

`session.py` calls one of these, performs `take_actions()`, and calls `wake` at `wake_ms`.

**States.**

    CONNECTING --welcome--> CONNECTED --lost--> CONNECTING ...
    CONNECTING --session expired--> EXPIRED
    any --close--> CLOSED

A session outlives its connections. Only ZooKeeper decides that it has expired, and tells us when we reconnect too late;
without a connection the machine never becomes EXPIRED. EXPIRED and CLOSED are final.

**A lost connection.** Requests that were not written yet wait for the next connection. Requests in flight may or may
not have been executed. Reads are sent again. A write ends with `ConnectionLostError`: the caller must read before it
repeats the write.

**A login** by SASL comes first on every new connection, after the welcome. All other requests wait for its end; only
then the machine is CONNECTED.

**Watches** are persistent. They are added again on every new connection, before any other request. Events between two
connections are lost, so every watch gets one RESUMED event, and what its callback then reads is at least as new as the
watch.

**Time.** We ping when nothing was sent for a third of the session timeout, and treat a connection as lost when nothing
was received for two thirds. So a third is left to reach another server before the session expires.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from ixion.broker.metadata.errors import ConnectionLostError, MetadataError, SessionExpiredError
from ixion.broker.metadata.session import Event, EventKind
from ixion.broker.metadata.zookeeper import packets
from ixion.broker.metadata.zookeeper.ensemble import Server
from ixion.broker.metadata.zookeeper.jute import JuteError, JuteReader, put_int
from ixion.broker.metadata.zookeeper.packets import Op, Read
from ixion.language.sasl.exchange import ClientExchange, SaslRefusedError

logger = logging.getLogger(__name__)

MAX_ANSWER: Final = 64 << 20  # bytes of a response; 100,000 children with long names are 20 MB
FIRST_PAUSE_MS: Final = 50  # after every server was tried once; doubles with each further round
LONGEST_PAUSE_MS: Final = 1_000
MAX_XID: Final = 2**31 - 1


class State(Enum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    EXPIRED = "expired"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Connect:
    server: Server


@dataclass(frozen=True, slots=True)
class Write:
    data: bytes


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection, or stop connecting. Do not call `lost` for it."""


Action = Connect | Write | Disconnect
Answer = Callable[[Any, BaseException | None], None]  # a result, or an error


class Request:
    """`path` is for messages. `repeatable`: it is sent again after a lost connection."""

    __slots__ = ("answer", "body", "op", "path", "read", "repeatable", "sent_ms", "version", "xid")

    def __init__(
        self, op: Op, path: str, body: bytes, read: Read, answer: Answer, *, repeatable: bool = False, version: int = -1
    ) -> None:
        self.op = op
        self.path = path
        self.body = body
        self.read = read
        self.answer = answer
        self.repeatable = repeatable
        self.version = version
        self.xid = 0
        self.sent_ms = 0


@dataclass(frozen=True, slots=True)
class Credentials:
    """The data that ZooKeeper needs to resume a session on another connection."""

    session_id: int
    password: bytes = field(repr=False)


NO_SESSION: Final = Credentials(0, packets.NO_PASSWORD)


class SessionMachine:
    """`jitter` returns a number from 0 to 1; `on_event` gets the events of all watches, `on_state` every new state.

    All callbacks may submit further requests.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        timeout_ms: int,
        *,
        chroot: str = "",
        auth: tuple[str, bytes] | None = None,
        login: Callable[[], ClientExchange] | None = None,
        jitter: Callable[[], float],
        on_event: Callable[[Event], None],
        on_state: Callable[[State], None],
    ) -> None:
        self.state = State.CONNECTING
        self.credentials = NO_SESSION
        self.timeout_ms = timeout_ms  # as requested; then as granted by the server
        self.last_fault = "no server was tried yet"
        self.server: Server | None = None
        self.wake_ms: int | None = None
        self._servers = servers
        self._chroot = chroot
        self._auth = auth
        self._login = login
        self._exchange: ClientExchange | None = None  # the login that is under way
        self._jitter = jitter
        self._on_event = on_event
        self._on_state = on_state
        self._last_zxid = 0
        self._next_server = 0
        self._connections = 0  # connections that have ended
        self._tries = 0  # attempts since the last working connection
        self._welcomed = False  # whether the session is established on this connection
        self._resumed = False  # whether it was made on an earlier one
        self._xid = 0
        self._waiting: deque[Request] = deque()  # not written yet
        self._under_way: deque[Request] = deque()
        self._watched: dict[str, None] = {}  # full paths, in the order of adding
        self._input = bytearray()
        self._actions: list[Action] = []
        self._sent_ms = 0
        self._heard_ms = 0
        self._pinged_ms: int | None = None  # when the oldest ping without a response was sent
        self._lease_ms = 0  # when the newest packet was sent to which ZooKeeper has responded in this session
        self._closing: Callable[[], None] | None = None

    def take_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    @property
    def session_id(self) -> int:
        return self.credentials.session_id

    @property
    def _is_open(self) -> bool:
        """Whether requests can be sent: the session is established on this connection, and a login is done."""
        return self._welcomed and self._exchange is None

    @property
    def over(self) -> bool:
        return self.state in (State.EXPIRED, State.CLOSED)

    def is_leased(self, now_ms: int) -> bool:
        """ZooKeeper counts the timeout from when it received our last packet, which is after we sent it."""
        return self.session_id != 0 and not self.over and now_ms - self._lease_ms < self.timeout_ms

    # Called by the owner.

    def start(self, now_ms: int) -> None:
        self._connect(now_ms)

    def submit(self, now_ms: int, request: Request) -> None:
        if self.over:
            request.answer(None, SessionExpiredError(request.path, f"the session is {self.state.value}"))
        elif self._is_open:
            self._write(now_ms, [request])
        else:
            self._waiting.append(request)

    def add_watch(self, now_ms: int, path: str) -> None:
        """A read after this call is at least as new as the watch."""
        full = packets.full_path(self._chroot, path)
        if not self.over and full not in self._watched:
            self._watched[full] = None
            if self._is_open:
                self._write(now_ms, [self._watch_request(full)])

    def remove_watch(self, now_ms: int, path: str) -> None:
        full = packets.full_path(self._chroot, path)
        if self._watched.pop(full, True) is None and self._is_open:
            body = packets.remove_watches_body(full)
            self._write(now_ms, [Request(Op.REMOVE_WATCHES, path, body, packets.read_nothing, _ignore)])

    def close(self, now_ms: int, closed: Callable[[], None]) -> None:
        """End the session, which deletes its ephemeral nodes at once. `closed` is called when ZooKeeper has done it. It
        is also called if there is no connection; then the nodes are deleted when the session expires."""
        if self.over or self._closing is not None:
            closed()
            return
        self._closing = closed
        if not self._welcomed:
            self._end(State.CLOSED)
            return
        self._write(now_ms, [Request(Op.CLOSE, "/", b"", packets.read_nothing, _ignore)])

    def abandon(self) -> None:
        """Close without ending the session in ZooKeeper."""
        if not self.over:
            self._end(State.CLOSED)

    # Called by the session for its connection.

    def connected(self, now_ms: int) -> None:
        self._heard_ms = self._sent_ms = now_ms
        self._input.clear()
        self._actions.append(
            Write(packets.connect_request(self._last_zxid, self.timeout_ms, self.session_id, self.credentials.password))
        )
        self._plan()

    def lost(self, now_ms: int, reason: str) -> None:
        """The connection ended, or connecting failed."""
        if self.over:
            return
        self.last_fault = f"{self.server}: {reason}"
        if self._closing is not None:
            self._end(State.CLOSED)
            return
        self._connections += 1
        self._welcomed = False
        self._exchange = None
        if self.state is State.CONNECTED:
            self._set_state(State.CONNECTING)
        under_way, self._under_way = self._under_way, deque()
        again = [request for request in under_way if request.repeatable]
        self._waiting.extendleft(reversed(again))
        if self._tries % len(self._servers) == 0 and self._tries:
            rounds = self._tries // len(self._servers)
            pause = min(FIRST_PAUSE_MS << min(rounds - 1, 10), LONGEST_PAUSE_MS)
            self.server = None
            self.wake_ms = now_ms + int(pause * (0.5 + self._jitter() / 2))
        else:
            self._connect(now_ms)
        for request in under_way:
            if not request.repeatable and request.op not in (Op.ADD_WATCH, Op.SASL):
                request.answer(None, ConnectionLostError(request.path, self.last_fault))

    def received(self, now_ms: int, data: bytes) -> None:
        if self.over or self.server is None:
            return
        self._heard_ms = now_ms
        self._input += data
        position = 0
        connection = self._connections
        try:
            while len(self._input) - position >= 4:
                size = int.from_bytes(self._input[position : position + 4], "big", signed=True)
                if not 0 <= size <= MAX_ANSWER:
                    raise JuteError(f"a packet of {size} bytes")
                if len(self._input) - position - 4 < size:
                    break
                packet = bytes(self._input[position + 4 : position + 4 + size])
                position += 4 + size
                self._take(now_ms, packet)
                if self._connections != connection:
                    return  # this packet ended the connection: ignore the rest
        except JuteError as error:
            self._drop(now_ms, f"sent bytes that are not ZooKeeper's protocol: {error}")
            return
        del self._input[:position]
        self._plan()

    def wake(self, now_ms: int) -> None:
        if self.over or self.wake_ms is None or now_ms < self.wake_ms:
            return
        if self.server is None:
            self._connect(now_ms)
        elif now_ms - self._heard_ms >= self._patience_ms:
            self._drop(now_ms, f"silent for {now_ms - self._heard_ms} ms")
        else:
            if self._welcomed and now_ms - self._sent_ms >= self.timeout_ms // 3:
                self._actions.append(Write(packets.PING))
                self._sent_ms = now_ms
                if self._pinged_ms is None:
                    self._pinged_ms = now_ms
            self._plan()

    # Inside.

    @property
    def _patience_ms(self) -> int:
        """Silence after which a connection counts as lost; before the welcome, divided by the number of servers."""
        if self._welcomed:
            return self.timeout_ms * 2 // 3
        return max(self.timeout_ms * 2 // 3 // len(self._servers), 1)

    def _connect(self, now_ms: int) -> None:
        self.server = self._servers[self._next_server % len(self._servers)]
        self._next_server += 1
        self._tries += 1
        self._heard_ms = self._sent_ms = now_ms
        self._actions.append(Connect(self.server))
        self._plan()

    def _drop(self, now_ms: int, reason: str) -> None:
        self._actions.append(Disconnect())
        self.lost(now_ms, reason)

    def _plan(self) -> None:
        if self.over or self.server is None:
            return
        silent = self._heard_ms + self._patience_ms
        self.wake_ms = min(silent, self._sent_ms + self.timeout_ms // 3) if self._welcomed else silent

    def _take(self, now_ms: int, packet: bytes) -> None:
        if not self._welcomed:
            self._greeted(now_ms, packets.read_welcome(packet))
            return
        reader = JuteReader(packet)
        xid, zxid, code = reader.read_int(), reader.read_long(), reader.read_int()
        if zxid > 0:
            self._last_zxid = zxid
        if xid == packets.WATCH_XID:
            event = packets.read_event(reader, self._chroot)
            if event is not None:
                self._on_event(Event(*event))
        elif xid == packets.AUTH_XID:
            if code != packets.OK:
                self._drop(now_ms, f"refused the credentials (error {code})")
        elif xid == packets.PING_XID:
            if self._pinged_ms is not None:
                self._lease_ms = max(self._lease_ms, self._pinged_ms)
                self._pinged_ms = None
        else:
            self._answered(xid, code, reader)

    def _greeted(self, now_ms: int, welcome: packets.Welcome) -> None:
        if welcome.timeout_ms <= 0:
            self._end(State.EXPIRED)
            return
        self.timeout_ms = welcome.timeout_ms
        self._resumed = self.session_id != 0
        self.credentials = Credentials(welcome.session_id, welcome.password)
        self._lease_ms = max(self._lease_ms, self._sent_ms)  # when the connect request was sent
        self._pinged_ms = None
        self._welcomed = True
        if self._login is None:
            self._begin(now_ms)
        else:
            self._exchange = self._login()
            self._write(now_ms, [self._sasl_request(self._exchange.first())])

    def _sasl_request(self, token: bytes) -> Request:
        return Request(Op.SASL, "/", packets.sasl_body(token), packets.read_token, self._login_answered)

    def _login_answered(self, token: bytes, error: BaseException | None) -> None:
        now_ms, exchange = self._heard_ms, self._exchange
        if exchange is None or self.over:
            return
        if error is not None:
            self._drop(now_ms, f"refused the login: {error}")
            return
        try:
            answer = exchange.step(token)
        except SaslRefusedError as refused:
            self._drop(now_ms, f"the login by SASL failed: {refused}")
            return
        if answer is not None:
            self._write(now_ms, [self._sasl_request(answer)])
        else:
            self._exchange = None
            self._begin(now_ms)

    def _begin(self, now_ms: int) -> None:
        """The connection can be used: send what has waited for it."""
        self._tries = 0
        if self._auth is not None:
            self._actions.append(Write(packets.auth_request(*self._auth)))
        waiting, self._waiting = self._waiting, deque()
        self._write(now_ms, [*map(self._watch_request, self._watched), *waiting])
        self._set_state(State.CONNECTED)
        if self._resumed:
            for path in list(self._watched):
                self._on_event(Event(EventKind.RESUMED, path.removeprefix(self._chroot) or "/"))

    def _watch_request(self, full: str) -> Request:
        return Request(Op.ADD_WATCH, full, packets.add_watch_body(full), packets.read_nothing, _watch_answered)

    def _write(self, now_ms: int, requests: Sequence[Request]) -> None:
        if not requests:
            return
        data = bytearray()
        for request in requests:
            self._xid = self._xid % MAX_XID + 1
            request.xid = self._xid
            request.sent_ms = now_ms
            packet = put_int(request.xid) + put_int(request.op) + request.body
            data += put_int(len(packet)) + packet
            self._under_way.append(request)
        self._actions.append(Write(bytes(data)))
        self._sent_ms = now_ms
        self._plan()

    def _answered(self, xid: int, code: int, reader: JuteReader) -> None:
        if not self._under_way or self._under_way[0].xid != xid:
            raise JuteError(f"a response to request {xid}, which is not the next")
        request = self._under_way.popleft()
        self._lease_ms = max(self._lease_ms, request.sent_ms)
        if request.op is Op.CLOSE:
            self._actions.append(Disconnect())
            self._end(State.CLOSED)
            return
        result: Any = None
        error: BaseException | None = None
        if code == packets.OK or (code != packets.SESSION_EXPIRED and request.op is Op.MULTI and reader.left):
            try:
                result = request.read(reader)
            except MetadataError as refused:
                error = refused
        else:
            error = packets.error_for(code, request.path, request.version)
        request.answer(result, error)

    def _end(self, state: State) -> None:
        self.server = None
        self.wake_ms = None
        self._connections += 1
        self._welcomed = False
        left = [*self._under_way, *self._waiting]
        self._under_way.clear()
        self._waiting.clear()
        self._watched.clear()
        self._set_state(state)
        if state is State.EXPIRED:
            self._actions.append(Disconnect())
        for request in left:
            request.answer(None, SessionExpiredError(request.path, f"the session is {state.value}"))
        if self._closing is not None:
            closed, self._closing = self._closing, None
            closed()

    def _set_state(self, state: State) -> None:
        self.state = state
        self._on_state(state)


def _ignore(_done: object, _error: BaseException | None) -> None:
    """For requests whose failure does not matter: removing a watch, closing the session."""


def _watch_answered(_done: object, error: BaseException | None) -> None:
    if error is not None and not isinstance(error, SessionExpiredError):
        logger.error("a watch was refused; changes of that node will not be noticed: %s", error)
