"""The tree behind ZooKeeper's protocol, as other clients than ours use it, and as nobody should.

The contract tests run our client against it (engine "served").
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.node import Check, Create, Operation, Set
from ixion.broker.metadata.zookeeper import packets, served, server_packets
from ixion.broker.metadata.zookeeper.jute import JuteReader, put_bool, put_int, put_long, put_string, put_strings
from ixion.broker.metadata.zookeeper.packets import Op, Welcome
from ixion.broker.metadata.zookeeper.served import Connection, Keeper

TIMEOUT_MS = 6_000


class Client:
    """A client that writes packets by hand and keeps what comes back."""

    def __init__(self, tree: Tree) -> None:
        self.closed = False
        self.sent = bytearray()
        self.connection = Connection(tree.keeper, self.sent.extend, self.hang_up)
        self.xid = 0

    def hang_up(self) -> None:
        self.closed = True

    def packets(self) -> list[JuteReader]:
        found = []
        while self.sent:
            size = int.from_bytes(self.sent[:4], "big")
            found.append(JuteReader(bytes(self.sent[4 : 4 + size])))
            del self.sent[: 4 + size]
        return found

    def hello(self, session_id: int = 0, password: bytes = bytes(16), last_zxid: int = 0) -> Welcome | None:
        self.connection.received(packets.connect_request(last_zxid, TIMEOUT_MS, session_id, password))
        if not self.sent:
            return None
        size = int.from_bytes(self.sent[:4], "big")
        data = bytes(self.sent[4 : 4 + size])
        del self.sent[: 4 + size]
        return packets.read_welcome(data)

    def ask(self, op: int, body: bytes) -> tuple[int, JuteReader, list[tuple[int, str]]]:
        """The error, the body of the answer, and the events that came before it."""
        self.xid += 1
        self.connection.received(packets.frame(put_int(self.xid) + put_int(op) + body))
        events, answers = self.sorted_packets()
        ((code, reader),) = answers
        return code, reader, events

    def events(self) -> list[tuple[int, str]]:
        events, answers = self.sorted_packets()
        assert not answers
        return events

    def sorted_packets(self) -> tuple[list[tuple[int, str]], list[tuple[int, JuteReader]]]:
        events: list[tuple[int, str]] = []
        answers: list[tuple[int, JuteReader]] = []
        for reader in self.packets():
            xid, _, code = reader.read_int(), reader.read_long(), reader.read_int()
            if xid == packets.WATCH_XID:
                assert not answers  # an event never comes after an answer that shows its change
                kind, _, path = reader.read_int(), reader.read_int(), reader.string()
                events.append((kind, path))
            else:
                answers.append((code, reader))
        return events, answers

    def create(self, path: str, data: bytes = b"") -> None:
        code, _, _ = self.ask(Op.CREATE, packets.create_body(Create(path, data), ""))
        assert code == 0

    def set(self, path: str, data: bytes) -> list[tuple[int, str]]:
        code, _, events = self.ask(Op.SET, packets.set_body(path, data, -1))
        assert code == 0
        return events


class Tree:
    def __init__(self) -> None:
        self.now_ms = 1_000
        self.keeper = Keeper(EmbeddedStore(IN_MEMORY, clock_ms=lambda: self.now_ms))

    def client(self) -> Client:
        client = Client(self)
        welcome = client.hello()
        assert welcome is not None
        assert welcome.timeout_ms == TIMEOUT_MS
        return client


@pytest.fixture
def tree() -> Iterator[Tree]:
    made = Tree()
    yield made
    made.keeper.store.close()


CREATED, DELETED, CHANGED, CHILDREN = 1, 2, 3, 4


def read(path: str, watch: bool) -> bytes:
    return put_string(path) + put_bool(watch)


def test_a_watch_of_get_fires_once(tree: Tree) -> None:
    one, other = tree.client(), tree.client()
    one.create("/a", b"1")
    code, reader, _ = one.ask(Op.GET, read("/a", True))
    assert (code, reader.buffer()) == (0, b"1")
    other.set("/a", b"2")
    other.set("/a", b"3")
    assert one.events() == [(CHANGED, "/a")]


def test_a_watch_of_exists_sees_the_node_made(tree: Tree) -> None:
    one, other = tree.client(), tree.client()
    code, _, _ = one.ask(Op.EXISTS, read("/a", True))
    assert code == packets.NO_NODE
    other.create("/a")
    other.set("/a", b"1")
    assert one.events() == [(CREATED, "/a")]


def test_get_of_a_missing_node_leaves_no_watch(tree: Tree) -> None:
    one, other = tree.client(), tree.client()
    code, _, _ = one.ask(Op.GET, read("/a", True))
    assert code == packets.NO_NODE
    other.create("/a")
    assert one.events() == []


def test_a_watch_of_children_reports_children_only(tree: Tree) -> None:
    one, other = tree.client(), tree.client()
    one.create("/a")
    _, reader, _ = one.ask(Op.CHILDREN_2, read("/a", True))
    assert reader.strings() == []
    other.set("/a", b"1")
    other.create("/a/b")
    other.create("/a/c")
    assert one.events() == [(CHILDREN, "/a")]


def test_the_events_of_a_change_come_before_its_answer(tree: Tree) -> None:
    one = tree.client()
    one.create("/a")
    one.ask(Op.GET, read("/a", True))
    assert one.set("/a", b"1") == [(CHANGED, "/a")]


def test_a_persistent_watch_fires_each_time_until_it_is_removed(tree: Tree) -> None:
    one, other = tree.client(), tree.client()
    one.ask(Op.ADD_WATCH, packets.add_watch_body("/a"))
    other.create("/a")
    other.set("/a", b"1")
    other.create("/a/b")
    assert one.events() == [(CREATED, "/a"), (CHANGED, "/a"), (CHILDREN, "/a")]
    one.ask(Op.REMOVE_WATCHES, packets.remove_watches_body("/a"))
    other.set("/a", b"2")
    assert one.events() == []


@pytest.mark.parametrize(
    ("word", "says"),
    [(b"ruok", b"imok"), (b"isro", b"rw"), (b"envi", b"zookeeper.version=3.6.0"), (b"srvr", b"Mode: standalone")],
    ids=["ruok", "isro", "envi", "srvr"],
)
def test_words_of_four_letters_are_answered_in_text(tree: Tree, word: bytes, says: bytes) -> None:
    client = Client(tree)
    client.connection.received(word[:2])
    client.connection.received(word[2:] + b"\n")
    assert says in client.sent
    assert client.closed
    greeted = tree.client()
    greeted.connection.received(word)
    assert greeted.closed, "after the greeting it is a length, and a wrong one"
    assert not greeted.sent


def test_there_are_so_many_watches_and_no_more(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "MOST_WATCHES_IN_ALL", 3)
    one, other = tree.client(), tree.client()
    for path in ("/a", "/b"):
        one.ask(Op.EXISTS, read(path, True))
    assert other.ask(Op.EXISTS, read("/a", True))[0] == packets.NO_NODE
    assert other.ask(Op.EXISTS, read("/b", True))[0] == server_packets.UNIMPLEMENTED
    assert other.ask(Op.EXISTS, read("/a", True))[0] == packets.NO_NODE, "a watch that is there is no other one"
    one.create("/a")  # fires two, of both clients
    assert other.events() == [(CREATED, "/a")]
    assert other.ask(Op.EXISTS, read("/b", True))[0] == packets.NO_NODE
    one.connection.lost()
    other.connection.lost()
    assert tree.keeper.watches == 0


def test_watches_of_an_earlier_connection_fire_for_what_changed_since(tree: Tree) -> None:
    one = tree.client()
    for path in ("/same", "/set", "/gone", "/parent"):
        one.create(path)
    seen = tree.keeper.store.zxid
    one.set("/set", b"1")
    one.ask(Op.DELETE, packets.version_body("/gone", -1))
    one.create("/new")
    data, missing, children = ["/same", "/set", "/gone"], ["/new", "/none"], ["/parent"]
    body = put_long(seen) + put_strings(data) + put_strings(missing) + put_strings(children)
    code, _, events = one.ask(Op.SET_WATCHES, body)
    assert code == 0
    assert events == [(CHANGED, "/set"), (DELETED, "/gone"), (CREATED, "/new"), (CHILDREN, "/parent")]
    assert one.set("/same", b"1") == [(CHANGED, "/same")]
    _, _, events = one.ask(Op.CREATE, packets.create_body(Create("/none"), ""))
    assert events == [(CREATED, "/none")]


def test_a_session_goes_on_over_a_new_connection(tree: Tree) -> None:
    one = Client(tree)
    welcome = one.hello()
    assert welcome is not None
    one.ask(Op.CREATE, packets.create_body(Create("/mine", ephemeral=True), ""))
    again = Client(tree)
    assert again.hello(welcome.session_id, welcome.password) == welcome
    assert one.closed
    code, _, _ = again.ask(Op.EXISTS, read("/mine", False))
    assert code == 0
    one.connection.lost()  # told late; the session belongs to the newer connection
    tree.now_ms += TIMEOUT_MS + 1
    tree.keeper.tick()
    assert again.closed


def test_a_wrong_password_is_answered_as_a_session_that_is_over(tree: Tree) -> None:
    one = Client(tree)
    welcome = one.hello()
    assert welcome is not None
    thief = Client(tree)
    answer = thief.hello(welcome.session_id, b"x" * 16)
    assert answer is not None
    assert answer.timeout_ms == 0
    assert thief.closed
    assert not one.closed


def test_a_client_that_has_seen_a_later_tree_is_refused(tree: Tree) -> None:
    client = Client(tree)
    assert client.hello(last_zxid=1_000) is None
    assert client.closed


def test_silence_ends_a_session_and_its_ephemeral_nodes(tree: Tree) -> None:
    silent, other = tree.client(), tree.client()
    silent.ask(Op.CREATE, packets.create_body(Create("/mine", ephemeral=True), ""))
    other.ask(Op.EXISTS, read("/mine", True))
    tree.now_ms += TIMEOUT_MS
    other.connection.received(packets.PING)
    other.packets()
    tree.keeper.tick()
    still_open = not silent.closed
    tree.now_ms += 1
    tree.keeper.tick()
    assert (still_open, silent.closed) == (True, True)
    assert other.events() == [(DELETED, "/mine")]
    assert not other.closed


def test_sessions_begin_again_after_the_server_stood_still(tree: Tree) -> None:
    client = tree.client()
    tree.now_ms += 10 * TIMEOUT_MS
    tree.keeper.forgive()
    tree.keeper.tick()
    assert not client.closed


def test_a_multi_names_the_operation_that_was_refused(tree: Tree) -> None:
    client = tree.client()
    operations: list[Operation] = [Create("/a"), Check("/", 7), Set("/a", b"1")]
    code, reader, _ = client.ask(Op.MULTI, packets.multi_body(operations, ""))
    assert code == 0
    codes = []
    for _ in operations:
        assert reader.read_int() == -1
        reader.read_bool()
        header, code = reader.read_int(), reader.read_int()
        assert header == code
        codes.append(code)
    assert codes == [0, packets.BAD_VERSION, packets.ROLLED_BACK]
    code, _, _ = client.ask(Op.EXISTS, read("/a", False))
    assert code == packets.NO_NODE


def test_every_stat_has_the_size_of_the_data(tree: Tree) -> None:
    client = tree.client()

    def size(reader: JuteReader) -> int:
        for _ in range(4):
            reader.read_long()
        for _ in range(3):
            reader.read_int()
        reader.read_long()
        return reader.read_int()

    _, made, _ = client.ask(Op.CREATE, packets.create_body(Create("/a", b"12345"), ""))
    assert (made.string(), size(made)) == ("/a", 5)
    _, access, _ = client.ask(Op.GET_ACL, put_string("/a"))
    assert access.read_int() == 1
    access.read_int(), access.string(), access.string()
    assert size(access) == 5
    _, several, _ = client.ask(Op.MULTI, packets.multi_body([Create("/b", b"123"), Set("/a", b"1")], ""))
    several.read_int(), several.read_bool(), several.read_int()
    assert (several.string(), size(several)) == ("/b", 3)


def test_what_the_tree_does_not_have_is_refused(tree: Tree) -> None:
    client = tree.client()
    digest = put_string("/a") + put_int(-1) + put_int(1) + put_int(31) + put_string("digest") + put_string("u:p")
    assert client.ask(Op.CREATE, digest + put_int(0))[0] == -114
    container = packets.create_body(Create("/a"), "")[:-4] + put_int(4)
    assert client.ask(Op.CREATE, container)[0] == -6
    assert client.ask(Op.ADD_WATCH, put_string("/a") + put_int(1))[0] == -6
    assert client.ask(77, b"")[0] == -6
    assert client.ask(Op.CREATE, packets.create_body(Create("no slash"), ""))[0] == -8
    in_multi = put_int(Op.CREATE) + put_bool(False) + put_int(-1) + digest + put_int(0)
    refused = client.ask(Op.MULTI, in_multi + put_int(-1) + put_bool(True) + put_int(-1))[1]
    assert (refused.read_int(), refused.read_bool(), refused.read_int()) == (-1, False, -114)
    assert not client.closed


@pytest.mark.parametrize(
    "data",
    [b"ruok", put_int(-1), put_int(1 << 20), packets.frame(b"\x00" * 3), packets.frame(b"\xff" * 60)],
    ids=["four letters", "negative", "too long", "too short", "garbage"],
)
def test_garbage_closes_the_connection_only(tree: Tree, data: bytes) -> None:
    stranger, client = Client(tree), tree.client()
    stranger.connection.received(data)
    assert stranger.closed
    client.create("/a")


def test_no_bytes_bring_it_down(tree: Tree) -> None:
    chance = random.Random(7)
    bodies = [
        packets.create_body(Create("/a", b"1"), ""),
        packets.multi_body([Create("/a"), Set("/a", b"1")], ""),
        packets.set_body("/a", b"1", -1),
        put_long(0) + put_strings(["/a"]) * 3,
    ]
    for _ in range(3_000):
        client = tree.client()
        body = bytearray(chance.choice(bodies))
        for _ in range(chance.randrange(4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        op = chance.choice([*Op, chance.randrange(-20, 120)])
        client.connection.received(packets.frame(put_int(1) + put_int(op) + body))
        client.connection.lost()
    tree.now_ms += TIMEOUT_MS + 1
    tree.keeper.tick()
    tree.client().create("/still")
