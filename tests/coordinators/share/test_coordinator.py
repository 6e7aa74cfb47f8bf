"""The share coordinator: what it stores and refuses, and what another broker reads back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.replica.share_persister import ACKNOWLEDGED, AVAILABLE, StateBatch
from ixion.language.model.errors import ErrorCode
from tests.coordinators.share.world import START_MS, TOPIC, World, key_of, update

KEY = key_of()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_a_state_is_initialized_written_and_read_back_after_a_restart(world: World) -> None:
    assert world.initialize(KEY) == ErrorCode.NONE
    assert world.read(KEY).start_offset == -1
    assert world.write(KEY, update(StateBatch(0, 9, ACKNOWLEDGED, 1), StateBatch(20, 29, AVAILABLE, 2))) == 0
    assert world.write(KEY, update(StateBatch(10, 11, AVAILABLE, 1, due_ms=START_MS + 5), start=10)) == 0
    before = world.read(KEY)
    assert before.start_offset == 10
    assert before.batches == (StateBatch(10, 11, AVAILABLE, 1, START_MS + 5), StateBatch(20, 29, AVAILABLE, 2))
    world.restart()
    assert world.read(KEY) == before


def test_what_was_never_initialized_is_unknown(world: World) -> None:
    assert world.ask(world.coordinator.read, KEY, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert world.write(KEY, update()) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    code, found = world.ask(world.coordinator.summary, KEY)
    assert (code, found.start_offset, found.state_epoch) == (ErrorCode.NONE, -1, -1)
    assert world.ask(world.coordinator.delete, KEY) == ErrorCode.NONE


def test_a_new_leader_fences_the_old_one_also_after_a_restart(world: World) -> None:
    world.initialize(KEY)
    world.read(KEY, leader_epoch=3)
    for _ in range(2):
        assert world.write(KEY, update(leader_epoch=2)) == ErrorCode.FENCED_LEADER_EPOCH
        assert world.ask(world.coordinator.read, KEY, 2) == (ErrorCode.FENCED_LEADER_EPOCH, None)
        assert world.write(KEY, update(leader_epoch=3)) == ErrorCode.NONE
        world.restart()


def test_altered_offsets_fence_writers_and_forget_what_was_in_flight(world: World) -> None:
    world.initialize(KEY, epoch=4)
    world.write(KEY, update(StateBatch(0, 9, ACKNOWLEDGED, 1), start=0, state_epoch=4))
    assert world.initialize(KEY, epoch=3) == ErrorCode.FENCED_STATE_EPOCH
    assert world.initialize(KEY, epoch=5, start=2) == ErrorCode.NONE
    assert world.write(KEY, update(state_epoch=4)) == ErrorCode.FENCED_STATE_EPOCH
    world.restart()
    state = world.read(KEY)
    assert (state.state_epoch, state.start_offset, state.batches) == (5, 2, ())


def test_deleted_states_and_those_of_deleted_topics_stay_gone(world: World) -> None:
    other = key_of(topic_id=bytes(16)[:-1] + b"1")
    for key in (KEY, other):
        world.initialize(key)
    assert world.ask(world.coordinator.delete, KEY) == ErrorCode.NONE
    world.missing.add(other.topic_id)
    world.coordinator.forget_missing()
    world.turn()
    world.missing.clear()
    world.restart()
    for key in (KEY, other):
        assert world.ask(world.coordinator.read, key, 0)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_does_not_exist_is_unknown(world: World) -> None:
    world.missing.add(TOPIC)
    assert world.initialize(KEY) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_writes_are_answered_when_they_are_stored(world: World) -> None:
    world.initialize(KEY)
    world.log.holding = True
    codes: list[ErrorCode] = []
    seen: list[ErrorCode] = []
    world.coordinator.write(KEY, update(StateBatch(0, 0, ACKNOWLEDGED, 1)), codes.append)
    world.coordinator.read(KEY, -1, lambda code, _: seen.append(code))
    world.turn()
    assert codes == seen == []
    world.log.let_go()
    assert codes == seen == [ErrorCode.NONE]


def test_all_changes_of_a_turn_are_one_batch(world: World) -> None:
    world.initialize(KEY)
    before = len(list(world.log.read(world.log.partition_for("g:AAECAwQFBgcICQoLDA0ODw:0"))))
    codes: list[ErrorCode] = []
    for offset in range(10):
        world.coordinator.write(KEY, update(StateBatch(offset, offset, ACKNOWLEDGED, 1)), codes.append)
    world.turn()
    assert codes == [ErrorCode.NONE] * 10
    assert len(list(world.log.read(world.log.partition_for("g:AAECAwQFBgcICQoLDA0ODw:0")))) == before + 1


def test_a_change_that_cannot_be_written_has_no_effect(world: World) -> None:
    world.initialize(KEY)
    world.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.write(KEY, update(StateBatch(0, 0, ACKNOWLEDGED, 1))) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.log.fail_with = ErrorCode.NONE
    assert world.read(KEY).batches == ()
    assert world.write(KEY, update(StateBatch(1, 1, ACKNOWLEDGED, 1))) == ErrorCode.NONE
    assert world.read(KEY).batches == (StateBatch(1, 1, ACKNOWLEDGED, 1),)


def test_a_broker_that_no_longer_leads_refuses_also_what_waits(world: World) -> None:
    world.initialize(KEY)
    codes: list[ErrorCode] = []
    world.coordinator.write(KEY, update(), codes.append)
    for number in range(world.log.partition_count):
        world.coordinator.on_resigned(number)
    world.turn()
    assert codes == [ErrorCode.NOT_COORDINATOR]
    assert world.write(KEY, update()) == ErrorCode.NOT_COORDINATOR


def test_hostile_batches_are_refused(world: World) -> None:
    world.initialize(KEY)
    for batch in (
        StateBatch(5, 4, AVAILABLE, 1),
        StateBatch(-2, 4, AVAILABLE, 1),
        StateBatch(0, 4, 9, 1),
        StateBatch(0, 4, AVAILABLE, -1),
    ):
        assert world.write(KEY, update(batch)) == ErrorCode.INVALID_REQUEST


def test_new_states_are_refused_beyond_the_budget(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.initialize(KEY)
    monkeypatch.setattr("ixion.broker.coordinators.share.coordinator.MOST_BYTES", 1_000)
    assert world.initialize(key_of("other")) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.initialize(KEY, epoch=2) == ErrorCode.NONE, "a known one may begin afresh"
    batch = StateBatch(0, 0, ACKNOWLEDGED, 1)
    assert world.write(KEY, update(batch, state_epoch=2)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.write(KEY, update(start=7, state_epoch=2)) == ErrorCode.NONE, "the start may always move"


def test_memory_is_counted_exactly(world: World) -> None:
    world.initialize(KEY)
    for first in (0, 4, 8, 2):
        world.write(KEY, update(StateBatch(first, first, ACKNOWLEDGED, 1)))
    world.write(KEY, update(start=3))
    before = world.coordinator.shards.held_bytes
    world.restart()
    assert world.coordinator.shards.held_bytes == before
    world.ask(world.coordinator.delete, KEY)
    assert world.coordinator.shards.held_bytes == 0


def test_snapshots_let_the_log_be_pruned() -> None:
    world = World(share_coordinator_snapshot_update_records_per_snapshot="10")
    world.initialize(KEY)
    for offset in range(100):
        world.write(KEY, update(StateBatch(offset, offset, ACKNOWLEDGED, 1), start=0))
    assert world.records(KEY) == 101
    world.coordinator.prune()
    assert 1 <= world.records(KEY) <= 10
    world.restart()
    assert world.read(KEY).batches == (StateBatch(0, 99, ACKNOWLEDGED, 1),)
    world.close()


def test_a_cold_state_does_not_keep_the_log_for_ever() -> None:
    world = World(share_coordinator_snapshot_update_records_per_snapshot="10")
    place = world.coordinator.shards.partition_for(KEY)
    others = [key_of(f"cold{number}") for number in range(100)]
    cold = next(key for key in others if world.coordinator.shards.partition_for(key) == place)
    world.initialize(cold)
    world.write(cold, update(StateBatch(7, 7, ACKNOWLEDGED, 1), start=7))
    world.initialize(KEY)
    for offset in range(1_500):
        world.write(KEY, update(StateBatch(offset, offset, ACKNOWLEDGED, 1), start=offset))
    world.coordinator.prune()
    assert world.records(KEY) > 1_400, "the cold state is young"
    world.advance(300_001)
    world.coordinator.prune()
    world.turn()
    world.coordinator.prune()
    assert world.records(KEY) < 50
    world.restart()
    assert world.read(cold).batches == (StateBatch(7, 7, ACKNOWLEDGED, 1),)
    world.close()


change = st.builds(
    lambda first, length, state, deliveries, start: (StateBatch(first, first + length, state, deliveries), start),
    st.integers(0, 30),
    st.integers(0, 5),
    st.sampled_from([AVAILABLE, ACKNOWLEDGED]),
    st.integers(1, 3),
    st.integers(-1, 10),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(change, max_size=25), st.integers(1, 6))
def test_memory_and_log_agree(changes: list[tuple[StateBatch, int]], updates: int) -> None:
    """Whatever is written, and however often it is a snapshot, another broker reads the same state."""
    world = World(share_coordinator_snapshot_update_records_per_snapshot=str(updates))
    world.initialize(KEY)
    for batch, start in changes:
        world.write(KEY, update(batch, start=start))
    before = world.read(KEY)
    world.coordinator.prune()
    world.restart()
    assert world.read(KEY) == before
    world.close()


def test_a_large_state_is_read_back_after_a_restart() -> None:
    """Its snapshot is restored in steps, and the update behind it applied after them."""
    world = World(share_coordinator_snapshot_update_records_per_snapshot="1")
    world.initialize(KEY, start=0)
    world.write(KEY, update(*[StateBatch(2 * at, 2 * at, AVAILABLE, 1, START_MS + at) for at in range(1_000)], start=0))
    for at in range(101):  # the last but one is due for a snapshot: there are 1,000 runs
        world.write(KEY, update(StateBatch(2 * at, 2 * at, ACKNOWLEDGED, 1), start=0))
    world.coordinator.prune()
    assert world.records(KEY) < 100, "it begins with the snapshot"
    before = world.read(KEY)
    world.restart()
    assert world.read(KEY) == before
    assert len(before.batches) == 1_000
    world.close()
