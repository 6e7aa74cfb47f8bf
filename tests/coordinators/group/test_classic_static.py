"""Static members: restarts without rebalances, and what fences the one that was there before."""

from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.kit import World, settle


@pytest.fixture
def world() -> World:
    """A stable group of i1 (leader) and i2."""
    world = World()
    first, second = world.join(instance="i1"), world.join(instance="i2")
    world.advance(5)
    assert (first.join.leader, second.join.member_id) == ("i1-1", "i2-2")
    world.sync("i2-2", 1)
    world.sync("i1-1", 1, {"i1-1": b"one", "i2-2": b"two"})
    assert world.state == "Stable"
    return world


def test_a_restarted_follower_gets_its_assignment_back_without_a_rebalance(world: World) -> None:
    again = world.join(instance="i2").join
    assert (again.error_code, again.generation_id, again.member_id) == (ErrorCode.NONE, 1, "i2-3")
    assert (again.leader, again.members) == ("i1-1", ())
    assert world.sync("i2-3", 1, group_instance_id="i2").sync.assignment == b"two"
    assert world.heartbeat("i1-1", 1) is ErrorCode.NONE


def test_a_restarted_leader_is_not_made_to_assign_again(world: World) -> None:
    again = world.join(instance="i1", version=5).join
    assert (again.member_id, again.leader, again.members) == ("i1-3", "i1-1", ())
    newer = world.join(instance="i1", version=9).join
    assert (newer.member_id, newer.leader, newer.skip_assignment) == ("i1-4", "i1-4", True)
    assert [member.group_instance_id for member in newer.members] == ["i1", "i2"]
    assert world.sync("i1-4", 1).sync.assignment == b"one"


def test_the_one_before_is_fenced(world: World) -> None:
    world.join(instance="i2")
    assert world.heartbeat("i2-2", 1, "i2") is ErrorCode.FENCED_INSTANCE_ID
    assert world.sync("i2-2", 1, group_instance_id="i2").code is ErrorCode.FENCED_INSTANCE_ID
    assert world.join("i2-2", instance="i2").code is ErrorCode.FENCED_INSTANCE_ID
    assert world.leave("i2-2", "i2") is ErrorCode.FENCED_INSTANCE_ID
    assert world.state == "Stable"


def test_a_request_of_the_one_before_that_waits_is_answered_with_the_fence(world: World) -> None:
    waiting = world.join("i1-1", instance="i1")
    assert waiting.waits
    successor = world.join(instance="i1")
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID
    assert successor.waits
    world.join("i2-2", instance="i2")
    assert successor.join.generation_id == 2


def test_the_replacement_survives_a_restart_of_the_broker(world: World) -> None:
    world.join(instance="i2")
    later = world.restart()
    assert later.heartbeat("i2-3", 1, "i2") is ErrorCode.NONE
    assert later.heartbeat("i2-2", 1, "i2") is ErrorCode.FENCED_INSTANCE_ID


def test_a_replacement_that_cannot_be_stored_is_undone(world: World) -> None:
    offered = world.group.members["i2-2"].protocols
    world.log.fail = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.join(instance="i2", protocols={"range": b"other"}).code is ErrorCode.NOT_COORDINATOR
    assert world.heartbeat("i2-2", 1, "i2") is ErrorCode.NONE
    assert world.group.members["i2-2"].protocols == offered


def test_a_replacement_that_has_joined_a_new_generation_meanwhile_is_not_undone(world: World) -> None:
    world.log.hold = True
    world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
    successor = world.join(instance="i2")
    world.join("i1-1", instance="i1")
    assert (successor.join.member_id, successor.join.generation_id) == ("i2-3", 2)
    world.log.release()
    assert world.heartbeat("i2-3", 2, "i2") is ErrorCode.NONE
    assert world.group.static_members == {"i1": "i1-1", "i2": "i2-3"}


def test_a_replacement_whose_record_comes_after_the_next_rebalance_waits_for_that(world: World) -> None:
    for refused in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS):
        world.log.hold = True
        world.log.fail = refused
        successor = world.join(instance="i2")
        another = world.join(client="d")
        world.log.release()
        world.run()
        assert successor.waits
        world.join("i1-1", instance="i1")
        assert successor.join.generation_id == another.join.generation_id
        world.sync("i1-1", successor.join.generation_id, {})
        world.leave(another.join.member_id)
        world.join("i1-1", instance="i1")
        generation = world.join(successor.join.member_id, instance="i2").join.generation_id
        world.sync("i1-1", generation, {})
        world.sync(successor.join.member_id, generation, group_instance_id="i2")
        assert world.state == "Stable"


def test_a_replacement_is_answered_when_it_is_stored_itself(world: World) -> None:
    world.log.hold = True
    first = world.join(instance="i2")
    world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
    second = world.join(instance="i2")
    assert first.code is ErrorCode.FENCED_INSTANCE_ID
    world.log.held.pop(0)()
    world.run()
    assert second.waits
    world.log.release()
    world.run()
    assert second.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_static_member_with_another_protocol_starts_a_rebalance() -> None:
    world = World()
    both = {"range": b"", "sticky": b""}
    world.join(instance="i1", protocols=both)
    world.advance(5)
    world.sync("i1-1", 1, {})
    waiting = world.join(instance="i1", protocols={"sticky": b"", "range": b""})
    assert waiting.join.generation_id == 2
    assert waiting.join.protocol_name == "sticky"


def test_a_static_member_that_is_slow_to_rejoin_keeps_its_place_until_its_session_ends(world: World) -> None:
    leader = world.join("i1-1", instance="i1", rebalance_ms=8_000)
    for _ in range(70):
        world.advance(1_000)
        world.heartbeat("i2-2", 1, "i2")
    assert leader.join.generation_id == 2
    assert [member.member_id for member in leader.join.members] == ["i1-1", "i2-2"]
    world.sync("i1-1", 2, {})
    for _ in range(11):
        world.heartbeat("i1-1", 2, "i1")
        world.advance(1_000)
    assert "i2-2" not in world.group.members


def test_where_only_static_members_are_missing_a_rebalance_waits_for_them_and_no_longer() -> None:
    world = World()
    world.join(instance="i1", rebalance_ms=8_000)
    world.advance(5)
    world.sync("i1-1", 1, {})
    gone = world.join(client="d", rebalance_ms=8_000)
    world.leave("d-2")
    assert gone.code is ErrorCode.UNKNOWN_MEMBER_ID
    for _ in range(5):
        assert world.heartbeat("i1-1", 1, "i1") is ErrorCode.REBALANCE_IN_PROGRESS
        world.advance(4_000)
    assert world.join("i1-1", instance="i1").join.generation_id == 2


def test_an_unknown_instance_is_an_unknown_member(world: World) -> None:
    assert world.heartbeat("i1-1", 1, "other") is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_administrator_removes_an_instance_by_name(world: World) -> None:
    assert world.leave(instance="i2") is ErrorCode.NONE
    assert world.leave(instance="i2") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.leave() is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(world.group.members) == ["i1-1"]


def test_a_static_member_that_returns_while_an_assignment_is_made_starts_over() -> None:
    world = World()
    world.join(instance="i1"), world.join(instance="i2")
    world.advance(5)
    leader = world.sync("i2-2", 1)
    world.join(instance="i1")
    assert leader.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.state == "PreparingRebalance"


def test_the_sync_of_the_one_before_that_waits_is_answered_with_the_fence() -> None:
    world = World()
    world.join(instance="i1"), world.join(instance="i2")
    world.advance(5)
    waiting = world.sync("i2-2", 1, group_instance_id="i2")
    world.join(instance="i2")
    assert waiting.code is ErrorCode.FENCED_INSTANCE_ID


def test_one_that_is_replaced_before_it_asks_for_its_assignment_is_asked_for_by_its_new_id() -> None:
    world = World()
    world.join(instance="i1", rebalance_ms=20_000), world.join(instance="i2", rebalance_ms=20_000)
    world.advance(5)
    world.sync("i1-1", 1, {"i1-1": b"one", "i2-2": b"two"})
    world.join(instance="i2", rebalance_ms=20_000)
    for _ in range(5):
        assert world.group.pending_sync == {"i2-3"}
        world.heartbeat("i1-1", 1), world.heartbeat("i2-3", 1)
        world.advance(4_001)
    assert list(world.group.members) == ["i1-1"]


def test_dynamic_members_beside_static_ones() -> None:
    world = World()
    settle(world, "d")
    static = world.join(instance="i1")
    world.join("d-1")
    assert static.join.generation_id == 2
    assert world.group.static_members == {"i1": "i1-2"}


def test_one_that_returns_and_dies_before_it_syncs_is_out_after_its_session(world: World) -> None:
    assert world.join(instance="i2").code is ErrorCode.NONE
    world.heartbeat("i1-1", 1)
    world.advance(9_000)
    world.heartbeat("i1-1", 1)
    assert world.state == "Stable"
    world.advance(1_100)
    assert world.group.static_members == {"i1": "i1-1"}


def test_one_that_is_replaced_in_its_first_rebalance_may_wait_longer_than_a_session(world: World) -> None:
    world.join(instance="new")
    again = world.join(instance="new")
    for _ in range(3):
        world.advance(5_000)
        for member in ("i1-1", "i2-2"):
            assert world.heartbeat(member, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert again.waits
    world.join("i1-1", instance="i1")
    world.join("i2-2", instance="i2")
    assert again.join.generation_id == 2
