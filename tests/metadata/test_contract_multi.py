"""What every engine does with several operations at once: all, or none."""

from __future__ import annotations

import pytest

from ixion.broker.metadata.errors import BadVersionError, MetadataError, NodeExistsError, NoNodeError
from ixion.broker.metadata.node import Check, Create, Delete, Operation, Set, Stat
from ixion.broker.metadata.session import Event, EventKind
from tests.metadata.engines import Engine, Session, ask


def test_all_in_order_with_their_results(session: Session) -> None:
    session.create("/old")
    results = session.multi(
        [
            Create("/a", b"1"),
            Create("/a/n-", sequential=True),
            Set("/a", b"2", version=0),
            Check("/a", 1),
            Delete("/old"),
        ]
    )
    made, numbered, stat, checked, deleted = results
    assert (made, numbered, checked, deleted) == ("/a", "/a/n-0000000000", None, None)
    assert isinstance(stat, Stat)
    assert stat.version == 1
    assert stat.created_zxid == stat.modified_zxid  # one transaction
    assert session.get("/a").data == b"2"
    assert session.exists("/old") is None


def test_nothing_at_all(session: Session) -> None:
    assert session.multi([]) == []


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (Create("/there"), NodeExistsError),
        (Create("/no/where"), NoNodeError),
        (Set("/there", b"", version=7), BadVersionError),
        (Set("/nowhere", b""), NoNodeError),
        (Delete("/there", version=7), BadVersionError),
        (Check("/there", 7), BadVersionError),
        (Check("/nowhere", 0), NoNodeError),
    ],
)
def test_one_that_is_refused_undoes_the_others(
    engine: Engine, session: Session, refused: Operation, error: type[MetadataError]
) -> None:
    session.create("/there", b"before")
    session.create("/doomed")
    events: list[Event] = []
    for path in ("/there", "/doomed", "/new", "/"):
        session.watch(path, events.append)
    with pytest.raises(error) as caught:
        session.multi([Create("/new"), Set("/there", b"after"), Delete("/doomed"), refused, Create("/never")])
    assert caught.value.operation == 3
    assert session.get("/there").data == b"before"
    assert session.get("/there").stat.version == 0
    assert session.exists("/doomed") is not None
    assert session.exists("/new") is None
    engine.settle()
    assert events == []


def test_only_one_of_two_wins_an_election(engine: Engine) -> None:
    """Kafka's: the ephemeral node and the next epoch, both or neither."""
    first, second = engine.session(), engine.session()
    first.create("/controller_epoch", b"0")

    def stand(session: Session, seen_version: int) -> None:
        session.multi([Create("/controller", b"me", ephemeral=True), Set("/controller_epoch", b"1", seen_version)])

    stand(first, 0)
    with pytest.raises(NodeExistsError):
        stand(second, 0)
    first.close()
    with pytest.raises(BadVersionError) as caught:
        stand(second, 0)  # the seat is free, but the epoch has moved on
    assert caught.value.operation == 1
    assert second.exists("/controller") is None
    stand(second, 1)
    assert second.get("/controller").stat.owner == second.session_id


def test_events_come_after_the_whole(engine: Engine, session: Session) -> None:
    seen: list[tuple[EventKind, bool]] = []

    def look(event: Event) -> None:
        ask(session, "/b", lambda stat: seen.append((event.kind, stat is not None)))

    session.watch("/a", look)
    session.multi([Create("/a"), Create("/b")])
    engine.settle()
    assert seen == [(EventKind.CREATED, True)]
