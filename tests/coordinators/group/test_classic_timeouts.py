"""Members that fall silent, at the worst moments."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.kit import World, settle


def test_a_silent_member_is_removed_after_its_session_timeout() -> None:
    world = World()
    settle(world, "a", "b", session_ms=10_000)
    world.advance(6_000)
    assert world.heartbeat("a-1", 1) is ErrorCode.NONE
    world.advance(5_000)
    assert world.heartbeat("a-1", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert list(world.group.members) == ["a-1"]


def test_heartbeats_keep_a_member() -> None:
    world = World()
    settle(world, "a", session_ms=10_000)
    for _ in range(10):
        world.advance(9_000)
        assert world.heartbeat("a-1", 1) is ErrorCode.NONE


def test_a_member_that_waits_in_a_rebalance_does_not_time_out() -> None:
    world = World()
    settle(world, "a", "b", session_ms=10_000)
    waiting = world.join("a-1")
    for _ in range(3):
        world.advance(9_000)
        assert world.heartbeat("b-2", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert waiting.waits
    world.join("b-2")
    assert waiting.join.generation_id == 2


def test_a_member_that_does_not_rejoin_in_time_is_removed() -> None:
    world = World()
    settle(world, "a", "b", session_ms=10_000, rebalance_ms=20_000)
    waiting = world.join("a-1", rebalance_ms=20_000)
    for _ in range(5):
        world.heartbeat("b-2", 1)
        world.advance(4_100)
    assert waiting.join.generation_id == 2
    assert world.heartbeat("b-2", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_dies_between_join_and_sync_is_replaced() -> None:
    world = World()
    leader, follower = world.join(client="a"), world.join(client="b")
    world.advance(5)
    assert leader.join.leader == "a-1"
    waiting = world.sync("b-2", follower.join.generation_id)
    world.advance(10_100)
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    again = world.join("b-2")
    assert (again.join.generation_id, again.join.leader) == (2, "b-2")


def test_a_leader_that_joins_and_hangs_with_a_beating_heart_is_removed() -> None:
    world = World()
    world.join(client="a", rebalance_ms=30_000), world.join(client="b", rebalance_ms=30_000)
    world.advance(5)
    waiting = world.sync("b-2", 1)
    for _ in range(10):
        world.heartbeat("a-1", 1)
        world.advance(3_100)
    assert waiting.code is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat("a-1", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_never_asks_for_its_assignment_is_removed() -> None:
    world = World()
    world.join(client="a", rebalance_ms=30_000), world.join(client="b", rebalance_ms=30_000)
    world.advance(5)
    world.sync("a-1", 1, {"a-1": b"", "b-2": b""})
    assert world.state == "Stable"
    for _ in range(10):
        world.heartbeat("a-1", 1)
        world.heartbeat("b-2", 1)
        world.advance(3_100)
    assert list(world.group.members) == ["a-1"]


def test_the_session_of_a_member_that_waited_for_its_assignment_begins_then() -> None:
    world = World()
    world.join(client="a", rebalance_ms=30_000), world.join(client="b", rebalance_ms=30_000)
    world.advance(5)
    waiting = world.sync("b-2", 1)
    for _ in range(5):
        world.heartbeat("a-1", 1)
        world.advance(4_000)
    world.sync("a-1", 1, {"b-2": b"two"})
    assert waiting.sync.assignment == b"two"
    for _ in range(2):
        world.heartbeat("a-1", 1)
        assert list(world.group.members) == ["a-1", "b-2"]
        world.advance(5_001)
    assert list(world.group.members) == ["a-1"]


def test_asking_for_an_assignment_is_a_sign_of_life() -> None:
    world = World()
    world.join(client="a"), world.join(client="b")
    world.advance(5)
    world.sync("a-1", 1, {})
    world.advance(9_000)
    world.heartbeat("a-1", 1)
    world.sync("b-2", 1)
    world.advance(9_000)
    assert list(world.group.members) == ["a-1", "b-2"]


def test_a_member_that_joins_again_may_ask_for_more_time() -> None:
    world = World()
    settle(world, "a", "b", rebalance_ms=20_000)
    waiting = world.join("a-1", rebalance_ms=40_000)
    for _ in range(9):
        assert world.heartbeat("b-2", 1) is ErrorCode.REBALANCE_IN_PROGRESS
        world.advance(4_000)
    assert waiting.waits
    world.advance(4_001)
    assert waiting.join.generation_id == 2


def test_a_new_member_that_gave_up_is_removed_after_five_minutes() -> None:
    world = World()
    settle(world, "a", session_ms=10_000, rebalance_ms=1_800_000)
    waiting = world.join(client="b", rebalance_ms=1_800_000)
    for _ in range(301):
        world.heartbeat("a-1", 1)
        world.advance(1_000)
    assert waiting.code is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_assignment_that_takes_long_to_store_is_not_given_to_the_next_generation() -> None:
    world = World()
    world.join(client="a"), world.join(client="b")
    world.advance(5)
    world.log.hold = True
    leader = world.sync("a-1", 1, {"a-1": b"old"})
    assert leader.waits
    third = world.join(client="d")
    assert leader.code is ErrorCode.REBALANCE_IN_PROGRESS
    world.log.release()
    world.run()
    assert world.state == "PreparingRebalance"
    assert third.waits


def test_an_assignment_that_cannot_be_stored_is_an_error_and_a_new_rebalance() -> None:
    world = World()
    world.join(client="a"), world.join(client="b")
    world.advance(5)
    follower = world.sync("b-2", 1)
    world.log.fail = ErrorCode.NOT_ENOUGH_REPLICAS
    leader = world.sync("a-1", 1, {})
    assert leader.code is follower.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.state == "PreparingRebalance"


def test_no_member_gets_an_assignment_before_it_is_stored() -> None:
    world = World()
    world.join(client="a")
    world.advance(5)
    world.log.hold = True
    leader = world.sync("a-1", 1, {"a-1": b"x"})
    assert leader.waits
    world.log.release()
    world.run()
    assert leader.sync.assignment == b"x"


def test_resigning_answers_every_member_that_waits() -> None:
    world = World()
    settle(world, "a")
    joining = world.join(client="b")
    world.groups.on_resigned(0)
    world.run()
    assert joining.code is ErrorCode.NOT_COORDINATOR
    assert world.join().code is ErrorCode.NOT_COORDINATOR
    assert world.heartbeat("a-1", 1) is ErrorCode.NOT_COORDINATOR


def test_resigning_answers_members_that_wait_for_an_assignment() -> None:
    world = World()
    world.join(client="a"), world.join(client="b")
    world.advance(5)
    waiting = world.sync("b-2", 1)
    world.groups.on_resigned(0)
    world.run()
    assert waiting.code is ErrorCode.NOT_COORDINATOR
