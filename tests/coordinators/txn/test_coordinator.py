"""Markers until every partition has them, timeouts, expiry, restarts, leadership."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.txn import coordinator
from ixion.broker.coordinators.txn.states import State
from ixion.language.model.errors import ErrorCode
from tests.coordinators.txn.world import World

T0 = ("t", 0)
T1 = ("t", 1)


def begun(world: World) -> None:
    world.init("x")
    world.add("x", 0, 0, T0, T1)


def test_markers_are_sent_again_to_those_that_lack_them(world: World) -> None:
    begun(world)
    world.markers.broken[T1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.end("x", 0, 0)
    for _ in range(5):
        world.advance(100)
    assert world.markers.outcomes() == [(T0, 0, 1, True)]
    assert world.state("x").state is State.PREPARE_COMMIT
    del world.markers.broken[T1]
    world.advance(100)
    assert world.markers.outcomes() == [(T0, 0, 1, True), (T1, 0, 1, True)]
    assert world.state("x").state is State.COMPLETE_COMMIT


def test_a_deleted_partition_needs_no_marker(world: World) -> None:
    begun(world)
    world.markers.broken[T1] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.end("x", 0, 0)
    assert world.state("x").state is State.PREPARE_COMMIT, "it may only not be here yet"
    world.missing.add(T1)
    world.advance(100)
    assert world.state("x").state is State.COMPLETE_COMMIT


def test_an_overtaken_coordinator_stops(world: World) -> None:
    begun(world)
    world.markers.broken[T0] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    world.end("x", 0, 0)
    world.markers.broken.clear()
    world.advance(10_000)
    assert world.markers.outcomes() == [(T1, 0, 1, True)]
    assert world.state("x").state is State.PREPARE_COMMIT


def test_completion_is_stored_again_until_it_is(world: World) -> None:
    begun(world)
    world.markers.holding = True
    world.end("x", 0, 0)
    world.log.fail_with = ErrorCode.REQUEST_TIMED_OUT
    world.markers.let_go()
    world.advance(100)
    assert world.state("x").state is State.PREPARE_COMMIT
    world.log.fail_with = ErrorCode.NONE
    world.advance(100)
    assert world.state("x").state is State.COMPLETE_COMMIT
    assert len(world.markers.written) == 2


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_may_go_on(world: World) -> None:
    begun(world)
    world.advance(60_000)
    assert world.state("x").state is State.ONGOING, "not before its time"
    world.advance(10_000)
    assert world.markers.outcomes() == [(T0, 0, 1, False), (T1, 0, 1, False)]
    assert world.end("x", 0, 0)[0] == "PRODUCER_FENCED", "what was aborted cannot be committed"
    assert world.add("x", 0, 0, T0) == "PRODUCER_FENCED"
    assert world.init("x", 0, 0) == ("NONE", 0, 1)


def test_partitions_that_are_added_later_bring_no_more_time(world: World) -> None:
    begun(world)
    world.advance(50_000)
    assert world.add("x", 0, 0, ("u", 0)) == "NONE"
    world.advance(20_000)
    assert world.state("x").state is State.COMPLETE_ABORT


def test_one_that_is_about_to_end_when_its_time_is_up_holds_up_no_other(world: World) -> None:
    begun(world)
    world.init("yy")
    world.add("yy", 1, 0, T0)
    world.log.holding = True
    assert world.end("x", 0, 0)[0] == "WAITS"
    world.advance(70_001)
    assert len(world.log.held) == 2, "the end of the one, and the abort of the other"
    world.log.let_go()
    assert (world.state("x").state, world.state("yy").state) == (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)


def test_what_has_ended_runs_out_of_time_no_more(world: World) -> None:
    begun(world)
    world.end("x", 0, 0)
    ended = world.state("x")
    world.advance(200_000)
    assert world.state("x") == ended
    assert len(world.markers.written) == 2


def test_very_many_that_are_late_are_aborted_in_turns(world: World) -> None:
    """Others are served in between, and one that ends meanwhile is not ended twice."""
    names = [f"txn {number:04}" for number in range(2_000)]
    for producer_id, name in enumerate(names):
        world.init(name)
        world.add(name, producer_id, 0, T0)
    world.clock.advance(60_001)
    world.coordinator.expiration.abort_timed_out()
    assert 0 < len(world.markers.written) < len(names)
    assert world.end(names[-1], len(names) - 1, 0)[0] == "NONE"
    world.coordinator.expiration.abort_timed_out()
    for _ in names:
        world.turn()
    assert len(world.markers.written) == len(names), "each once, for every request"
    states = {world.state(name).state for name in names[:-1]}
    assert (states, world.state(names[-1]).state) == ({State.COMPLETE_ABORT}, State.COMPLETE_COMMIT)


def test_at_version_1_a_producer_out_of_time_is_shut_out() -> None:
    world = World(version=1)
    world.init("x")
    world.add("x", 0, 0, T0, version=0)
    world.advance(70_001)
    assert world.markers.outcomes() == [(T0, 0, 1, False)]
    assert world.end("x", 0, 0, version=0)[0] == "PRODUCER_FENCED"
    assert world.init("x", 0, 0)[0] == "PRODUCER_FENCED"
    world.close()


def test_unused_ids_are_forgotten(world: World) -> None:
    week = 604_800_000
    for name in ("x", "y", "zz", "open"):
        world.init(name)
    world.add("open", 3, 0, T0)
    world.markers.broken[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER  # keeps it from being settled
    world.advance(week // 2)
    world.init("y")
    world.advance(week // 2)
    listed = world.coordinator.list()
    assert isinstance(listed, list)
    assert sorted(each.transactional_id for each in listed) == ["open", "y"]
    assert world.log.stored("x") is None
    assert world.init("x")[1] == 4, "a new producer id"


def test_a_tombstone_that_cannot_be_stored_keeps_the_id(world: World) -> None:
    world.init("x")
    world.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    world.advance(604_800_000 + 3_600_000)
    assert world.state("x").state is State.EMPTY
    world.log.fail_with = ErrorCode.NONE
    assert world.init("x") == ("NONE", 0, 1)


def test_a_restart_knows_what_was_stored(world: World) -> None:
    begun(world)
    world.init("settled")
    before = world.state("x")
    world.restart()
    assert world.state("x") == before
    assert world.end("x", 0, 0) == ("NONE", 0, 1)
    assert world.init("settled") == ("NONE", 1, 1)


def test_a_restart_finishes_what_was_decided(world: World) -> None:
    begun(world)
    world.markers.holding = True
    world.end("x", 0, 0)
    assert world.markers.written == []
    world.markers.held.clear()
    world.markers.holding = False
    world.restart()
    assert world.markers.outcomes() == [(T0, 0, 1, True), (T1, 0, 1, True)]
    assert world.end("x", 0, 0) == ("NONE", 0, 1), "a repetition finds the outcome after the restart"
    assert all(marker.coordinator_epoch == 7 for _, marker in world.markers.written)


def test_a_coordinator_that_resigned_refuses_and_changes_nothing(world: World) -> None:
    begun(world)
    world.log.holding = True
    heard: list[ErrorCode] = []
    world.coordinator.end("x", 0, 0, True, 2, lambda code, *_: heard.append(code))
    world.coordinator.on_resigned(world.log.partition_for("x"))
    assert heard == []
    world.log.let_go()
    assert heard == [ErrorCode.NOT_COORDINATOR]
    assert world.markers.written == []
    assert world.end("x", 0, 0)[0] == "NOT_COORDINATOR"
    assert world.init("x")[0] == "NOT_COORDINATOR"
    assert world.coordinator.describe("x") == ErrorCode.NOT_COORDINATOR
    world.coordinator.on_elected(world.log.partition_for("x"), 8)
    world.load()
    world.turn()
    assert world.markers.outcomes() == [(T0, 0, 1, True), (T1, 0, 1, True)], "the next leader finds it decided"


def test_markers_of_a_lost_partition_are_not_sent_again(world: World) -> None:
    begun(world)
    world.markers.broken = {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER, T1: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    world.end("x", 0, 0)
    world.coordinator.on_resigned(world.log.partition_for("x"))
    world.markers.broken.clear()
    world.advance(1_000)
    assert world.markers.written == []


def test_an_unknown_id(world: World) -> None:
    assert world.coordinator.describe("x") == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert world.coordinator.describe("") == ErrorCode.INVALID_REQUEST
    assert world.add("x", 0, 0, T0) == "INVALID_PRODUCER_ID_MAPPING"


def test_few_transactional_ids_are_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "MOST_IDS", 2)
    assert [world.init(name)[0] for name in ("a", "b")] == ["NONE"] * 2
    assert world.init("c")[0] == "COORDINATOR_NOT_AVAILABLE"
    assert world.init("a")[0] == "NONE"  # one that is known goes on


def test_long_transactional_ids_have_a_budget_in_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "MOST_IDS_BYTES", 600_000)
    names = [f"\N{HATCHING CHICK}{number}" + "x" * 32_000 for number in range(6)]
    assert [world.init(name)[0] for name in names] == ["NONE"] * 4 + ["COORDINATOR_NOT_AVAILABLE"] * 2
    assert world.init("short")[0] == "NONE"
    assert world.init(names[0])[0] == "NONE"
