"""The session machine against a server that is only bytes: what it sends, when, and what becomes of its requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.broker.metadata.errors import (
    ConnectionLostError,
    MetadataError,
    NoNodeError,
    SessionExpiredError,
)
from ixion.broker.metadata.session import Event, EventKind
from ixion.broker.metadata.zookeeper import packets
from ixion.broker.metadata.zookeeper.ensemble import Server
from ixion.broker.metadata.zookeeper.jute import JuteReader, put_buffer, put_int, put_long, put_string
from ixion.broker.metadata.zookeeper.machine import (
    LONGEST_PAUSE_MS,
    Connect,
    Disconnect,
    Request,
    SessionMachine,
    State,
    Write,
)
from ixion.broker.metadata.zookeeper.packets import Op
from ixion.language.sasl.exchange import ClientExchange, SaslRefusedError

A, B = Server("a", 2181), Server("b", 2181)
TIMEOUT_MS = 6_000


class TwoMessages(ClientExchange):
    """Two messages; refuses a server that says "forged"."""

    def __init__(self) -> None:
        self._proven = False

    def first(self) -> bytes:
        return b""

    def step(self, received: bytes) -> bytes | None:
        if received == b"forged":
            raise SaslRefusedError("the server does not know the password")
        if self._proven:
            return None
        self._proven = True
        return b"proof of " + received


class Holder:
    """The owner of a machine, and the server at its other end."""

    def __init__(
        self, servers: tuple[Server, ...] = (A, B), chroot: str = "", auth: bool = False, login: bool = False
    ) -> None:
        self.now = 1_000
        self.events: list[Event] = []
        self.states: list[State] = []
        self.answers: list[object] = []
        self.machine = SessionMachine(
            servers,
            TIMEOUT_MS,
            chroot=chroot,
            auth=("digest", b"me:secret") if auth else None,
            login=TwoMessages if login else None,
            jitter=lambda: 1.0,
            on_event=self.events.append,
            on_state=self.states.append,
        )
        self.machine.start(self.now)

    def connects_to(self) -> Server:
        actions = [action for action in self.machine.take_actions() if isinstance(action, Connect)]
        (action,) = actions
        return action.server

    def sent(self) -> list[JuteReader]:
        """The packets written since the last look, each past its length."""
        data = b"".join(action.data for action in self.machine.take_actions() if isinstance(action, Write))
        found = []
        while data:
            size = int.from_bytes(data[:4], "big")
            found.append(JuteReader(data[4 : 4 + size]))
            data = data[4 + size :]
        return found

    def headers(self) -> list[tuple[int, int]]:
        """xid and type of each request written."""
        return [(packet.read_int(), packet.read_int()) for packet in self.sent()]

    def greet(self, timeout_ms: int = TIMEOUT_MS, session_id: int = 77) -> None:
        """The connection is made and the server takes the session in, or says that it is over (timeout 0)."""
        self.machine.connected(self.now)
        self.machine.take_actions()
        body = put_int(0) + put_int(timeout_ms) + put_long(session_id) + put_buffer(b"p" * 16)
        self.machine.received(self.now, packets.frame(body))

    def ask(self, op: Op = Op.GET, *, repeatable: bool = True) -> None:
        def answer(result: object, error: BaseException | None) -> None:
            self.answers.append(type(error) if error is not None else result)

        def read(reader: JuteReader) -> bytes:
            return reader.buffer()

        request = Request(op, "/x", packets.path_body("/x"), read, answer, repeatable=repeatable)
        self.machine.submit(self.now, request)

    def reply(self, xid: int, data: bytes = b"", *, code: int = 0, zxid: int = 5) -> None:
        body = put_buffer(data) if code == 0 else b""
        self.machine.received(self.now, packets.frame(put_int(xid) + put_long(zxid) + put_int(code) + body))

    def tell(self, kind: int, path: str) -> None:
        event = put_int(kind) + put_int(3) + put_string(path)
        header = put_int(packets.WATCH_XID) + put_long(-1) + put_int(0)
        self.machine.received(self.now, packets.frame(header + event))

    def lose(self, reason: str = "reset") -> None:
        self.machine.lost(self.now, reason)


def connected(**options: bool | str) -> Holder:
    holder = Holder(**options)  # type: ignore[arg-type]
    holder.connects_to()
    holder.greet()
    holder.machine.take_actions()
    return holder


def test_requests_wait_for_the_session_and_leave_in_order() -> None:
    holder = Holder()
    holder.ask()
    holder.ask(Op.DELETE, repeatable=False)
    assert holder.connects_to() == A
    holder.greet()
    assert [op for _, op in holder.headers()] == [Op.GET, Op.DELETE]
    assert holder.states == [State.CONNECTED]
    holder.reply(1, b"one")
    holder.reply(2, b"two")
    assert holder.answers == [b"one", b"two"]


def test_the_session_goes_on_over_the_next_server() -> None:
    holder = connected()
    holder.ask()
    holder.reply(1, zxid=900)
    holder.lose()
    assert holder.connects_to() == B
    holder.machine.connected(holder.now)
    (packet,) = holder.sent()
    packet.read_int()
    assert (packet.read_long(), packet.read_int(), packet.read_long()) == (900, TIMEOUT_MS, 77)
    assert packet.buffer() == b"p" * 16


def test_a_lost_connection_repeats_reads_and_ends_writes() -> None:
    holder = connected()
    holder.ask()
    holder.ask(Op.SET, repeatable=False)
    holder.ask()
    holder.headers()
    holder.lose()
    assert holder.answers == [ConnectionLostError]
    holder.ask(Op.DELETE, repeatable=False)  # not written, so not lost
    holder.connects_to()
    holder.greet()
    assert holder.headers() == [(4, Op.GET), (5, Op.GET), (6, Op.DELETE)]
    for xid in (4, 5, 6):
        holder.reply(xid, b"%d" % xid)
    assert holder.answers == [ConnectionLostError, b"4", b"5", b"6"]


def test_an_expired_session_ends_everything_at_once() -> None:
    holder = connected()
    holder.machine.add_watch(holder.now, "/w")
    holder.ask()
    holder.lose()
    holder.connects_to()
    holder.greet(timeout_ms=0, session_id=0)
    assert holder.machine.state is State.EXPIRED
    assert holder.answers == [SessionExpiredError]
    holder.ask()
    assert holder.answers == [SessionExpiredError, SessionExpiredError]
    assert holder.events == []
    assert [type(action) for action in holder.machine.take_actions()] == [Disconnect]
    assert holder.machine.wake_ms is None


def test_watches_are_added_anew_before_anything_else_and_each_is_resumed() -> None:
    holder = connected(chroot="/kafka")
    for path in ("/a", "/", "/b"):
        holder.machine.add_watch(holder.now, path)
    holder.machine.add_watch(holder.now, "/a")  # a second watcher of the path needs no second watch
    assert [op for _, op in holder.headers()] == [Op.ADD_WATCH] * 3
    holder.machine.remove_watch(holder.now, "/b")
    assert [op for _, op in holder.headers()] == [Op.REMOVE_WATCHES]
    holder.ask()
    holder.headers()
    holder.lose()
    holder.connects_to()
    holder.greet()
    packets_sent = holder.sent()
    assert [(packet.read_int(), packet.read_int())[1] for packet in packets_sent] == [
        Op.ADD_WATCH,
        Op.ADD_WATCH,
        Op.GET,
    ]
    assert [packet.string() for packet in packets_sent] == ["/kafka/a", "/kafka", "/x"]
    assert holder.events == [Event(EventKind.RESUMED, "/a"), Event(EventKind.RESUMED, "/")]


def test_events_lose_their_chroot() -> None:
    holder = connected(chroot="/kafka")
    holder.tell(1, "/kafka/a")
    holder.tell(4, "/kafka")
    holder.tell(5, "/kafka/a")  # a watch was removed: nothing of the node
    assert holder.events == [Event(EventKind.CREATED, "/a"), Event(EventKind.CHILDREN, "/")]


def test_it_pings_when_it_is_silent_and_gives_up_a_silent_server() -> None:
    holder = connected()
    start = holder.now
    assert holder.machine.wake_ms == start + TIMEOUT_MS // 3
    holder.now = start + TIMEOUT_MS // 3
    holder.machine.wake(holder.now)
    assert holder.headers() == [(packets.PING_XID, Op.PING)]
    holder.now = start + TIMEOUT_MS * 2 // 3
    holder.machine.wake(holder.now)
    assert holder.connects_to() == B
    assert "silent" in holder.machine.last_fault
    assert holder.states[-1] is State.CONNECTING


def test_the_lease_counts_from_when_an_answered_packet_was_sent() -> None:
    holder = Holder()
    assert not holder.machine.is_leased(holder.now), "no session yet"
    holder.connects_to()
    holder.greet()
    holder.ask()
    asked = holder.now
    holder.now += TIMEOUT_MS // 2
    holder.tell(1, "/x")
    holder.reply(1)  # the server may have received it half a timeout ago
    assert holder.machine.is_leased(asked + TIMEOUT_MS - 1)
    assert not holder.machine.is_leased(asked + TIMEOUT_MS)


def test_a_ping_renews_the_lease_from_when_it_was_sent() -> None:
    holder = connected()
    holder.now += TIMEOUT_MS // 3
    pinged = holder.now
    holder.machine.wake(holder.now)
    holder.tell(1, "/x")  # so that the server does not count as silent
    holder.now += TIMEOUT_MS // 3
    holder.machine.wake(holder.now)  # a second ping, while the first has no answer
    assert [xid for xid, _ in holder.headers()] == [packets.PING_XID] * 2
    holder.reply(packets.PING_XID)
    assert holder.machine.is_leased(pinged + TIMEOUT_MS - 1)
    assert not holder.machine.is_leased(pinged + TIMEOUT_MS)


def test_a_session_that_is_over_has_no_lease() -> None:
    holder = connected()
    assert holder.machine.is_leased(holder.now)
    holder.lose()
    assert holder.machine.is_leased(holder.now), "a lost connection is not a lost session"
    holder.connects_to()
    holder.greet(timeout_ms=0)
    assert not holder.machine.is_leased(holder.now)


def test_a_server_that_answers_pings_is_kept() -> None:
    holder = connected()
    for _ in range(20):
        assert holder.machine.wake_ms is not None
        holder.now = holder.machine.wake_ms
        holder.machine.wake(holder.now)
        if holder.headers():
            holder.reply(packets.PING_XID)
    assert holder.states == [State.CONNECTED]


def test_a_server_that_does_not_greet_costs_only_its_share_of_the_time() -> None:
    holder = Holder()
    holder.connects_to()
    holder.machine.connected(holder.now)
    holder.machine.take_actions()
    assert holder.machine.wake_ms == holder.now + TIMEOUT_MS // 3
    holder.now = holder.machine.wake_ms
    holder.machine.wake(holder.now)
    assert holder.connects_to() == B


def test_every_server_is_tried_before_it_waits_longer_and_longer() -> None:
    holder = Holder()
    pauses = []
    for _ in range(8):
        for server in (A, B):
            assert holder.connects_to() == server
            holder.lose("refused")
        assert holder.machine.take_actions() == []
        assert holder.machine.wake_ms is not None
        pauses.append(holder.machine.wake_ms - holder.now)
        holder.now = holder.machine.wake_ms
        holder.machine.wake(holder.now)
    assert pauses[0] < pauses[1] < pauses[2]
    assert pauses[-1] == LONGEST_PAUSE_MS


def test_everything_else_waits_for_a_login() -> None:
    holder = Holder(login=True)
    holder.ask()
    holder.connects_to()
    holder.greet()
    (packet,) = holder.sent()
    assert (packet.read_int(), packet.read_int()) == (1, Op.SASL)
    assert packet.read_int() == 0, "an empty token is not null"
    holder.ask()
    holder.machine.add_watch(holder.now, "/w")
    assert holder.sent() == []
    holder.reply(1, b"nonce")
    (packet,) = holder.sent()
    assert (packet.read_int(), packet.read_int(), packet.buffer()) == (2, Op.SASL, b"proof of nonce")
    assert holder.states == []
    holder.reply(2, b"")
    assert holder.headers() == [(3, Op.ADD_WATCH), (4, Op.GET), (5, Op.GET)]
    assert holder.states == [State.CONNECTED]
    holder.lose()
    holder.connects_to()
    holder.greet()
    assert [op for _, op in holder.headers()] == [Op.SASL], "on every connection"


@pytest.mark.parametrize("refused", [True, False])
def test_a_login_that_fails_is_tried_with_other_servers_and_then_after_pauses(refused: bool) -> None:
    holder = Holder(login=True)
    holder.ask()
    for _ in range(2):
        holder.connects_to()
        holder.greet()
        (xid, op) = holder.headers()[-1]
        assert op == Op.SASL
        holder.reply(xid, b"forged", code=-115 if refused else 0)
        assert "login" in holder.machine.last_fault
    assert holder.machine.take_actions() == [Disconnect()]
    assert holder.machine.wake_ms is not None
    assert holder.machine.wake_ms > holder.now
    assert holder.answers == [], "it waits for the next connection"
    assert holder.states == []


def test_credentials_go_first_on_every_connection_and_a_refusal_is_named() -> None:
    holder = Holder(auth=True)
    holder.ask()
    holder.connects_to()
    holder.greet()
    assert [op for _, op in holder.headers()] == [Op.AUTH, Op.GET]
    holder.reply(packets.AUTH_XID, code=-115)
    assert holder.connects_to() == B
    assert "credentials" in holder.machine.last_fault


def test_close_waits_for_the_server_and_nothing_is_answered_after_it() -> None:
    holder = connected()
    closed: list[str] = []
    holder.ask()
    holder.machine.close(holder.now, lambda: closed.append("closed"))
    assert [op for _, op in holder.headers()] == [Op.GET, Op.CLOSE]
    holder.reply(1, b"still")
    assert closed == []
    holder.reply(2)
    assert (holder.answers, closed, holder.machine.state) == ([b"still"], ["closed"], State.CLOSED)


@pytest.mark.parametrize("when", ["before the greeting", "lost while closing"])
def test_close_without_a_server(when: str) -> None:
    holder = Holder() if when == "before the greeting" else connected()
    closed: list[str] = []
    holder.machine.close(holder.now, lambda: closed.append("closed"))
    if when == "lost while closing":
        holder.lose()
    assert closed == ["closed"]
    assert holder.machine.state is State.CLOSED


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\xff\xff\xff\xff",
        packets.frame(b"\x00"),
        packets.frame(put_int(99) + put_long(1) + put_int(0)),  # an answer to nothing
    ],
)
def test_what_is_not_zookeeper_is_left_for_the_next_server(garbage: bytes) -> None:
    holder = connected()
    holder.ask()
    holder.machine.take_actions()
    holder.machine.received(holder.now, garbage)
    assert holder.connects_to() == B
    assert holder.answers == []
    holder.greet()
    holder.headers()
    holder.reply(2, b"in the end")
    assert holder.answers == [b"in the end"]


def test_bytes_after_the_end_of_a_connection_are_dropped() -> None:
    holder = connected(auth=True)
    refused = packets.frame(put_int(packets.AUTH_XID) + put_long(1) + put_int(-115))
    event = put_int(packets.WATCH_XID) + put_long(-1) + put_int(0) + put_int(1) + put_int(3) + put_string("/a")
    holder.machine.received(holder.now, refused + packets.frame(event))
    assert holder.events == []
    assert holder.machine.state is State.CONNECTING


def test_errors_have_their_classes() -> None:
    holder = connected()
    holder.ask()
    holder.reply(1, code=packets.NO_NODE)
    holder.ask()
    holder.reply(2, code=-9_999)
    first, second = holder.answers
    assert first is NoNodeError
    assert isinstance(second, type)
    assert issubclass(second, MetadataError)


@given(st.data())
def test_packets_may_arrive_in_any_pieces(data: st.DataObject) -> None:
    holder = connected()
    stream = b""
    for number in range(1, 6):
        holder.ask()
        body = put_buffer(b"v" * data.draw(st.integers(0, 20)))
        stream += packets.frame(put_int(number) + put_long(number) + put_int(0) + body)
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        holder.machine.received(holder.now, stream[:size])
        stream = stream[size:]
    assert len(holder.answers) == 5


@given(st.lists(st.sampled_from(["ask", "write", "answer", "lose", "greet", "wake", "expire"]), max_size=60))
def test_every_request_is_answered_once_whatever_happens(steps: list[str]) -> None:
    holder = Holder()
    asked = 0
    for step in steps:
        machine = holder.machine
        if step in ("ask", "write"):
            asked += 1
            holder.ask(Op.GET if step == "ask" else Op.SET, repeatable=step == "ask")
        elif step == "answer" and machine.state is State.CONNECTED and machine._under_way:
            holder.reply(machine._under_way[0].xid)
        elif step == "lose" and machine.server is not None:
            holder.lose()
        elif step in ("greet", "expire") and machine.server is not None and machine.state is State.CONNECTING:
            holder.greet(TIMEOUT_MS if step == "greet" else 0)
        elif step == "wake" and machine.wake_ms is not None:
            holder.now = machine.wake_ms
            machine.wake(holder.now)
        machine.take_actions()
        assert machine.over or machine.server is not None or machine.wake_ms is not None, "it always goes on"
    holder.machine.abandon()
    assert len(holder.answers) == asked
