from __future__ import annotations

import pytest

from ixion.broker.share import session as sessions
from ixion.broker.share.session import MAX_EPOCH, Place, ShareSessions

TOPIC = bytes(16)


def places(count: int, first: int = 0) -> list[Place]:
    return [(TOPIC, number) for number in range(first, first + count)]


def test_sessions_have_a_budget_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_BYTES", 20_000)
    kept = ShareSessions(100)
    one = kept.begin(("g", "one"), "", places(5))
    assert one is not None
    assert kept.begin(("g", "two"), "", places(10)) is None
    assert not kept.change(one, places(10, first=5), [])
    assert list(one.places) == places(5)
    assert kept.change(one, places(2, first=5), places(3))
    assert kept.bytes == one.bytes
    kept.end(one)
    assert kept.bytes == 0


def test_long_names_of_groups_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_BYTES", 400_000)
    kept = ShareSessions(100)
    long = "\N{HATCHING CHICK}" * 32_000
    for number in range(3):
        assert kept.begin((f"{number}{long}", "m"), "", []) is not None
    assert kept.begin((f"3{long}", "m"), "", []) is None
    assert kept.begin((f"2{long}", "m"), "", []) is not None, "in place of the one before"


def test_a_session_that_cannot_be_replaced_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_BYTES", 20_000)
    kept = ShareSessions(100)
    one = kept.begin(("g", "m"), "", places(2))
    assert kept.begin(("g", "m"), "", places(20)) is None
    assert one is not None
    assert one.open
    assert kept.get(("g", "m"), "") is one


def test_sessions_are_limited_in_number() -> None:
    kept = ShareSessions(2)
    assert kept.begin(("g", "one"), "", []) is not None
    assert kept.begin(("g", "two"), "", []) is not None
    assert kept.begin(("g", "three"), "", []) is None
    assert kept.begin(("g", "two"), "", []) is not None, "in place of the one before"


def test_another_principal_cannot_replace_or_use_a_session() -> None:
    kept = ShareSessions(2)
    assert kept.begin(("g", "m"), "User:alice", []) is not None
    assert kept.begin(("g", "m"), "User:mallory", []) is None
    assert kept.get(("g", "m"), "User:mallory") is None
    assert kept.get(("g", "m"), "User:alice") is not None


def test_epochs_wrap_to_one() -> None:
    session = ShareSessions(1).begin(("g", "m"), "", [])
    assert session is not None
    session.epoch = MAX_EPOCH
    session.advance()
    assert session.epoch == 1


def test_each_partition_is_first_now_and_then() -> None:
    session = ShareSessions(1).begin(("g", "m"), "", places(3))
    assert session is not None
    first = []
    for _ in range(6):
        first.append(session.in_turn()[0][1])
        session.advance()
    assert sorted(set(first)) == [0, 1, 2]


def test_a_session_names_a_limited_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_PLACES", 5)
    kept = ShareSessions(10)
    assert kept.begin(("g", "m"), "", places(6)) is None
    session = kept.begin(("g", "m"), "", places(5))
    assert session is not None
    assert not kept.change(session, places(6), [])
    assert kept.change(session, places(5), [])
