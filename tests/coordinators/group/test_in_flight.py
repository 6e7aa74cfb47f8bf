"""What removes offsets meets a commit that is in the log and not replicated yet."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from tests.coordinators.group.consumer_kit import Client
from tests.coordinators.group.kit import GROUP, World, whole
from tests.coordinators.group.test_offsets import DAY_MS, commit, fetch

PLACE: TopicPartition = ("t", 0)


def begin_commit(world: World, offset: int, *places: TopicPartition, producer_id: int = -1) -> list[list[ErrorCode]]:
    """Where the answer will be."""
    told: list[list[ErrorCode]] = []
    wanted = [Wanted(place, offset, -1, "") for place in places or [PLACE]]
    committer = Committer(GROUP, "", None, -1, producer_id, 0 if producer_id >= 0 else -1)
    world.groups.commits.commit(committer, wanted, told.append)
    world.run()
    return told


def held(world: World) -> World:
    world.log.hold = True
    return world


def is_same_after_restart(world: World, *places: TopicPartition) -> bool:
    return fetch(world, *places) == fetch(world.restart(), *places)


@pytest.mark.parametrize("others", [0, 2])
def test_expiry_leaves_what_is_being_committed(others: int) -> None:
    world = World(offsets_retention_minutes=10)
    for number in range(others + 1):
        commit(world, 1, partition=("t", number))
    world.advance(2 * DAY_MS)
    told = begin_commit(held(world), 2)
    world.groups.expire_offsets()
    world.run()
    world.log.release()
    world.run()
    assert told == [[ErrorCode.NONE]]
    places = [("t", number) for number in range(others + 1)]
    assert fetch(world, *places) == [2, *[-1] * others]
    assert is_same_after_restart(world, *places)


def test_the_offsets_of_a_deleted_topic_go_but_not_those_of_its_successor() -> None:
    world = World()
    commit(world, 1)
    world.log.hold = True
    world.groups.on_topics_deleted(["t"])
    world.advance(1)
    told = begin_commit(world, 2)  # the sweep has not reached this group yet, or has; either is right
    world.log.release()
    world.run()
    assert told == [[ErrorCode.NONE]]
    assert is_same_after_restart(world)


@pytest.mark.parametrize("producer_id", [-1, 7])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_deleted_group_takes_what_is_being_committed_along(producer_id: int, is_reversed: bool) -> None:
    """The log has the commit first. Acknowledgements may come in any order."""
    world = World()
    commit(world, 1, partition=("u", 0))
    told = begin_commit(held(world), 2, producer_id=producer_id)
    deleted: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, deleted.append)
    world.run()
    if is_reversed:
        world.log.held.reverse()
    world.log.release()
    world.run()
    assert (told, deleted) == ([[ErrorCode.NONE]], [ErrorCode.NONE])
    assert fetch(world, PLACE, ("u", 0)) == [-1, -1]
    assert whole(world.groups.admin.list((), ()))[1] == ()
    again = world.restart()
    assert fetch(again, PLACE, ("u", 0)) == [-1, -1]
    assert whole(again.groups.admin.list((), ()))[1] == ()


def test_what_comes_after_a_deletion_stays() -> None:
    world = World()
    commit(world, 1)
    held(world)
    deleted: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, deleted.append)
    told = begin_commit(world, 2)
    world.log.release()
    world.run()
    assert (told, deleted) == ([[ErrorCode.NONE]], [ErrorCode.NONE])
    assert fetch(world) == [2]
    assert is_same_after_restart(world)


def test_a_member_that_joins_during_a_deletion_is_in_a_new_group() -> None:
    world = World()
    first = Client(world, "a", "t")
    assert first.join() is ErrorCode.NONE
    assert first.leave() is ErrorCode.NONE
    held(world)
    deleted: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, deleted.append)
    world.run()
    world.log.hold = False
    second = Client(world, "b", "t")
    assert second.join() is ErrorCode.NONE
    world.log.release()
    world.run()
    assert deleted == [ErrorCode.NONE]
    assert set(world.group.members) == {"b"}
    assert set(world.restart().group.members) == {"b"}


@pytest.mark.parametrize("code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])
def test_a_deletion_that_fails_leaves_what_the_log_has(code: ErrorCode) -> None:
    world = World()
    commit(world, 1)
    world.log.fail = code
    deleted: list[ErrorCode] = []
    world.groups.admin.delete(GROUP, deleted.append)
    world.run()
    assert deleted != [ErrorCode.NONE]
    assert fetch(world) == [1]
    assert is_same_after_restart(world)


def test_deleted_offsets_take_what_is_being_committed_along() -> None:
    world = World()
    commit(world, 1)
    told = begin_commit(held(world), 2, PLACE, ("u", 0))
    codes: list[tuple[ErrorCode, list[ErrorCode]]] = []
    world.groups.offsets.delete(GROUP, [PLACE], lambda code, each: codes.append((code, each)))
    world.run()
    world.log.held.reverse()
    world.log.release()
    world.run()
    assert (told, codes) == ([[ErrorCode.NONE] * 2], [(ErrorCode.NONE, [ErrorCode.NONE])])
    assert fetch(world, PLACE, ("u", 0)) == [-1, 2]
    assert is_same_after_restart(world, PLACE, ("u", 0))
