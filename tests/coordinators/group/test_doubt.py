"""A broker that may have been replaced answers no stable offsets before its followers are heard."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.group.doubt import POLL_MS, POLLS
from tests.coordinators.group.kit import GROUP, World

FOLLOWERS = {2: 10, 3: 10}


def resolve(world: World) -> list[frozenset[int]]:
    """The outcome is in the list as soon as there is one."""
    told: list[frozenset[int]] = []
    world.groups.doubt.resolve(world.groups.doubt.partitions([GROUP]), told.append)
    return told


def test_a_leader_whose_session_lives_is_not_in_doubt() -> None:
    assert World().groups.doubt.partitions([GROUP]) == set()


@pytest.mark.parametrize("lease", [None, 2], ids=["silent", "another session"])
def test_a_leader_whose_session_may_have_expired_is_in_doubt(lease: int | None) -> None:
    world = World()
    world.lease = lease
    assert world.groups.doubt.partitions([GROUP]) == {0}


def test_an_election_in_the_new_session_ends_the_doubt() -> None:
    world = World()
    world.lease = 2
    world.groups.on_elected(0, 0)
    assert world.groups.doubt.partitions([GROUP]) == {0}, "the epoch is not new"
    world.groups.on_elected(0, 1)
    assert world.groups.doubt.partitions([GROUP]) == set()


def test_each_follower_must_fetch_twice() -> None:
    world = World()
    world.lease = None
    world.log.fetches = dict(FOLLOWERS)
    told = resolve(world)
    for fetches in ({2: 11, 3: 12}, {2: 11, 3: 90}):
        world.log.fetches = fetches
        world.advance(POLL_MS)
        assert not told
    world.log.fetches = {2: 12, 3: 90}
    world.advance(POLL_MS)
    assert told == [frozenset()]


def test_a_follower_that_left_the_isr_is_not_waited_for() -> None:
    world = World()
    world.lease = None
    world.log.fetches = dict(FOLLOWERS)
    told = resolve(world)
    world.log.fetches = {3: 12}
    world.advance(POLL_MS)
    assert told == [frozenset()]


def test_a_leader_without_followers_in_sync_cannot_have_been_replaced() -> None:
    world = World()
    world.lease = None
    assert resolve(world) == [frozenset()]


def test_silent_followers_leave_the_partition_in_doubt() -> None:
    world = World()
    world.lease = None
    world.log.fetches = dict(FOLLOWERS)
    told = resolve(world)
    world.advance(POLL_MS * (POLLS - 2))
    assert not told
    world.advance(POLL_MS)
    assert told == [frozenset({0})]
    world.advance(POLL_MS * POLLS)
    assert len(told) == 1


def test_a_leader_that_learns_of_its_successor_says_so_itself() -> None:
    world = World()
    world.lease = None
    world.log.fetches = dict(FOLLOWERS)
    told = resolve(world)
    world.log.fetches = None
    world.advance(POLL_MS)
    assert told == [frozenset()]


def test_a_client_that_goes_is_not_answered() -> None:
    world = World()
    world.lease = None
    world.log.fetches = dict(FOLLOWERS)
    told: list[frozenset[int]] = []
    give_up = world.groups.doubt.resolve([0], told.append)
    give_up()
    world.log.fetches = {}
    world.advance(POLL_MS * POLLS)
    assert not told
