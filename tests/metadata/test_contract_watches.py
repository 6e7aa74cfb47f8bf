"""What every engine does with watches and sessions."""

from __future__ import annotations

import pytest

from ixion.broker.metadata.errors import NodeExistsError, SessionExpiredError
from ixion.broker.metadata.session import Event, EventKind
from tests.metadata.engines import Engine, Session

CREATED, CHANGED, DELETED, CHILDREN = EventKind.CREATED, EventKind.CHANGED, EventKind.DELETED, EventKind.CHILDREN


def test_a_watch_fires_for_every_change_of_its_node(engine: Engine) -> None:
    watching, working = engine.session(), engine.session()
    events: list[Event] = []
    watching.watch("/a", events.append)  # before there is such a node
    working.create("/a")
    working.set("/a", b"1")
    working.set("/a", b"1")  # the same data is a change, too
    working.create("/a/b")
    working.set("/a/b", b"1")  # data of children are not
    working.delete("/a/b")
    working.delete("/a")
    working.create("/a")
    engine.settle()
    kinds = [event.kind for event in events]
    assert kinds == [CREATED, CHANGED, CHANGED, CHILDREN, CHILDREN, DELETED, CREATED]
    assert {event.path for event in events} == {"/a"}


def test_grandchildren_are_not_children(engine: Engine, session: Session) -> None:
    session.create("/a")
    session.create("/a/b")
    events: list[Event] = []
    session.watch("/a", events.append)
    session.create("/a/b/c")
    engine.settle()
    assert events == []


def test_a_cancelled_watch_is_silent(engine: Engine, session: Session) -> None:
    kept: list[Event] = []
    cancelled: list[Event] = []
    cancel = session.watch("/a", cancelled.append)
    session.watch("/a", kept.append)
    cancel()
    cancel()
    session.create("/a")
    engine.settle()
    assert cancelled == []
    assert [event.kind for event in kept] == [CREATED]


def test_events_of_many_nodes_come_in_the_order_of_changes(engine: Engine) -> None:
    watching, working = engine.session(), engine.session()
    events: list[Event] = []
    names = [f"/n{number}" for number in range(20)]
    for name in names:
        watching.watch(name, events.append)
    for name in names:
        working.create(name)
    for name in reversed(names):
        working.delete(name)
    engine.settle()
    expected = [Event(CREATED, name) for name in names] + [Event(DELETED, name) for name in reversed(names)]
    assert events == expected


def test_a_callback_may_change_the_tree(engine: Engine, session: Session) -> None:
    events: list[Event] = []

    def follow(event: Event) -> None:
        events.append(event)
        if event.kind is CREATED and event.path == "/a":
            session.create("/b")
            events.append(Event(CHANGED, "the callback on /a returned"))

    session.watch("/a", follow)
    session.watch("/b", follow)
    session.create("/a")
    engine.settle()
    assert events == [Event(CREATED, "/a"), Event(CHANGED, "the callback on /a returned"), Event(CREATED, "/b")]


def test_a_callback_that_fails_does_not_stop_the_others(engine: Engine, session: Session) -> None:
    events: list[Event] = []

    def fail(event: Event) -> None:
        raise RuntimeError("on purpose")

    session.watch("/a", fail)
    session.watch("/a", events.append)
    session.create("/a")
    engine.settle()
    assert [event.kind for event in events] == [CREATED]


@pytest.mark.parametrize("how", ["closed", "expired"])
def test_the_end_of_a_session_takes_its_ephemeral_nodes_along(engine: Engine, how: str) -> None:
    ending, living = engine.session(), engine.session()
    living.create("/ids")
    living.create("/ids/1", ephemeral=True)
    ending.create("/ids/2", ephemeral=True)
    ending.create("/kept")
    heard: list[Event] = []
    own: list[Event] = []
    living.watch("/ids", heard.append)
    living.watch("/ids/2", heard.append)
    ending.watch("/ids/2", own.append)
    if how == "closed":
        ending.close()
    else:
        engine.let_expire(ending)
    engine.settle()
    assert heard == [Event(DELETED, "/ids/2"), Event(CHILDREN, "/ids")]
    assert own == []
    assert living.children("/ids") == ["1"]
    assert living.exists("/kept") is not None


@pytest.mark.parametrize("how", ["closed", "expired"])
def test_a_session_that_is_over_can_do_nothing(engine: Engine, how: str) -> None:
    ending, living = engine.session(), engine.session()
    ending.create("/a")
    if how == "closed":
        ending.close()
    else:
        engine.let_expire(ending)
    for refused in (
        lambda: ending.create("/b"),
        lambda: ending.get("/a"),
        lambda: ending.exists("/a"),
        lambda: ending.set("/a", b""),
        lambda: ending.delete("/a"),
        lambda: ending.children("/"),
        lambda: ending.multi([]),
        lambda: ending.watch("/a", lambda event: None),
    ):
        with pytest.raises(SessionExpiredError):
            refused()
    ending.close()  # harmless
    assert living.exists("/b") is None


def test_expiry_is_reported_once_and_closing_is_not_expiry(engine: Engine) -> None:
    expiring, closing = engine.session(), engine.session()
    told: list[str] = []
    expiring.on_expired(lambda: told.append("expiring"))
    closing.on_expired(lambda: told.append("closing"))
    closing.close()
    engine.let_expire(expiring)
    engine.settle()
    assert told == ["expiring"]


def test_the_holder_learns_of_expiry_in_time_to_register_again(engine: Engine) -> None:
    first, second = engine.session(), engine.session()
    first.create("/me", b"first", ephemeral=True)
    with pytest.raises(NodeExistsError):
        second.create("/me", b"second", ephemeral=True)

    def register_again() -> None:
        second.create("/me", b"second", ephemeral=True)

    first.on_expired(register_again)
    engine.let_expire(first)
    engine.settle()
    assert second.get("/me").data == b"second"


def test_sessions_differ(engine: Engine) -> None:
    assert engine.session().session_id != engine.session().session_id
