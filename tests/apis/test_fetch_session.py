"""Which fetch session gets a slot when all are taken: KIP-227's rules, on a clock that is an argument."""

from __future__ import annotations

import pytest

from ixion.broker.apis.fetch_session import (
    MAX_EPOCH,
    MIN_LIFE_MS,
    MOST_BYTES,
    MOST_FOLLOWERS_BYTES,
    Cached,
    FetchSession,
    FetchSessions,
    size_of,
)
from ixion.broker.replica.results import FetchWish

LATER = MIN_LIFE_MS + 1


def fill(session: FetchSession, size: int) -> FetchSession:
    session.partitions = {(b"", "t", n): Cached(FetchWish("t", b"", n, 0, 1)) for n in range(size)}
    return session


def make(sessions: FetchSessions, size: int, now_ms: int = 0, privileged: bool = False) -> FetchSession:
    session = sessions.create(False, privileged, size, now_ms)
    assert session is not None
    return fill(session, size)


def test_ids_are_unlike_and_never_zero() -> None:
    sessions = FetchSessions(1000)
    ids = {make(sessions, 1).id for _ in range(1000)}
    assert (len(ids), min(ids) > 0, sessions.partitions) == (1000, True, 1000)


def test_epochs_go_round_and_leave_out_zero() -> None:
    session = make(FetchSessions(1), 1)
    session.epoch = MAX_EPOCH
    session.advance()
    assert session.epoch == 1


def test_no_places_at_all() -> None:
    assert FetchSessions(0).create(False, True, 9, LATER) is None


def test_sessions_in_use_stay() -> None:
    sessions = FetchSessions(1)
    make(sessions, 1)
    assert sessions.create(False, False, 100, MIN_LIFE_MS) is None


def test_one_unused_for_long_is_removed_whatever_its_size() -> None:
    sessions = FetchSessions(2)
    idle, used = make(sessions, 100), make(sessions, 1)
    used.used_ms = LATER
    make(sessions, 1, LATER)
    assert (idle.id in sessions.sessions, used.id in sessions.sessions) == (False, True)


@pytest.mark.parametrize(("size", "gets_it"), [(4, False), (5, False), (6, True)])
def test_a_larger_one_takes_the_place_of_a_smaller_one_that_has_had_its_time(size: int, gets_it: bool) -> None:
    sessions = FetchSessions(1)
    old = make(sessions, 5)
    old.used_ms = LATER  # in use, but not young any more
    assert (sessions.create(False, False, size, LATER) is not None) is gets_it


def test_of_several_the_smallest_goes() -> None:
    sessions = FetchSessions(3)
    made = [make(sessions, size) for size in (5, 3, 4)]
    for session in made:
        session.used_ms = LATER
    make(sessions, 9, LATER)
    assert [session.id in sessions.sessions for session in made] == [True, False, True]


def test_a_followers_session_is_worth_more_than_any_consumers() -> None:
    sessions = FetchSessions(1)
    follower = make(sessions, 1, privileged=True)
    follower.used_ms = LATER
    assert sessions.create(False, False, 1000, LATER) is None
    assert sessions.create(False, True, 2, LATER) is not None


def test_a_follower_need_not_wait_for_a_consumer_to_grow_old() -> None:
    sessions = FetchSessions(1)
    make(sessions, 50)
    assert sessions.create(False, True, 1, 1) is not None


def test_young_followers_keep_their_places() -> None:
    sessions = FetchSessions(1)
    make(sessions, 1, privileged=True)
    assert sessions.create(False, True, 50, 1) is None


def grow(session: FetchSession, name: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        session.put((b"", name, number), FetchWish(name, b"", number, 0, 1))


@pytest.mark.parametrize("privileged", [False, True])
def test_sessions_have_a_budget_in_bytes(privileged: bool) -> None:
    sessions = FetchSessions(1000)
    size = MOST_FOLLOWERS_BYTES if privileged else MOST_BYTES
    name = "\N{HATCHING CHICK}" + "x" * 32_000
    first = make(sessions, 0, privileged=privileged)
    each = size_of((b"", name, 0))
    assert each > 128_000
    grow(first, name, 0, size // each)
    assert sessions.has_room_for(first)
    second = make(sessions, 0, privileged=privileged)
    grow(second, "t", 0, 10_000)
    assert not sessions.has_room_for(second)
    sessions.remove(second.id)
    for number in range(10):
        first.forget((b"", name, number))
    assert sessions.has_room_for(first)
    third = make(sessions, 0, privileged=privileged)
    grow(third, "t", 0, 1_000)
    assert sessions.has_room_for(third)
    sessions.remove(first.id)
    sessions.remove(third.id)
    assert (sessions.bytes, sessions.followers_bytes) == (0, 0)
