"""Static members of consumer groups: away for a while, back under another id or their own."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.consumer_kit import Client, beat_all, group_of, world_of


def test_a_static_member_that_missed_the_answer_to_its_join_joins_again() -> None:
    world = world_of()
    first = Client(world, "a", "t", instance_id="i1")
    first.join()
    again = Client(world, "a", "t", instance_id="i1")
    assert again.join() is ErrorCode.NONE
    assert (again.epoch, len(again.owned)) == (2, 6)


def test_a_static_member_may_come_back_under_the_id_it_had() -> None:
    world = world_of()
    first = Client(world, "a", "t", instance_id="i1")
    first.join()
    first.leave(-2)
    assert first.join() is ErrorCode.NONE
    assert (first.epoch, len(first.owned), group_of(world).members["a"].current.previous_epoch) == (2, 6, 0)
    assert first.beat(instance_id="i1") is ErrorCode.NONE
    assert list(group_of(world.restart()).members) == ["a"]


def test_a_static_member_that_is_away_for_a_while_finds_its_partitions() -> None:
    world = world_of()
    first, second = Client(world, "a", "t", instance_id="i1"), Client(world, "b", "t", instance_id="i2")
    first.join(), second.join()
    beat_all(first, second)
    had = set(first.owned)
    early = Client(world, "c", "t", instance_id="i1")
    assert early.join() is ErrorCode.UNRELEASED_INSTANCE_ID
    assert first.leave(-2) is ErrorCode.NONE
    second.beat()
    assert len(second.owned) == 3, "nobody takes what is kept for i1"
    assert early.join() is ErrorCode.NONE
    assert (early.owned, early.epoch) == (had, second.epoch)
    assert first.beat(instance_id="i1") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_leaves_temporarily_has_revoked_what_it_must() -> None:
    world = world_of()
    first, second = Client(world, "a", "t", instance_id="i1"), Client(world, "b", "t")
    first.join(), second.join()
    first.clings = True
    first.beat(instance_id="i1")
    first.leave(-2)
    second.beat()
    assert len(second.owned) == 3


def test_a_static_member_that_does_not_come_back_loses_them() -> None:
    world = world_of()
    first, second = Client(world, "a", "t", instance_id="i1"), Client(world, "b", "t")
    first.join(), second.join()
    beat_all(first, second)
    first.leave(-2)
    for _ in range(10):
        world.advance(5_000)
        second.beat()
    assert len(second.owned) == 6
