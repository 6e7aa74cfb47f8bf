"""A transaction coordinator finds its ids again, whatever stands in the log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ixion.broker.coordinators.loader import RETRY_MS
from ixion.broker.coordinators.txn.snapshot import created
from ixion.broker.coordinators.txn.states import State
from ixion.broker.coordinators.txn.storage import FLEXIBLE, snapshot_batch
from ixion.language.model.errors import ErrorCode
from ixion.language.records.builder import BatchBuilder
from tests.coordinators.txn.world import World

T0 = ("t", 0)
MANY = 5_000  # more than anybody can load in one turn


def fill(world: World, state: State, count: int = MANY) -> None:
    """Ids of five characters, all of them in one partition."""
    for number in range(count):
        snapshot = replace(created(number, 60_000, 0), epoch=1, state=state, partitions=frozenset({T0}))
        name = f"{number:05}"
        world.log.batches[world.log.partition_for(name)].append(snapshot_batch(name, snapshot, FLEXIBLE, 0))


def test_a_long_log_is_loaded_in_turns(world: World) -> None:
    fill(world, State.COMPLETE_COMMIT)
    world.begin_restart()
    assert world.init("00000")[0] == "COORDINATOR_LOAD_IN_PROGRESS"
    assert world.load() > 1
    assert world.init("00000") == ("NONE", 0, 2)


def test_the_markers_of_a_crash_go_out_in_turns(world: World) -> None:
    fill(world, State.PREPARE_COMMIT)
    world.restart()
    sent = len(world.markers.written)
    assert sent < MANY, "the ids are known before all markers are out"
    for _ in range(10_000):
        if len(world.markers.written) == MANY:
            break
        world.turn()
    assert len(world.markers.written) == MANY
    assert {world.state(f"{number:05}").state for number in range(MANY)} == {State.COMPLETE_COMMIT}


def test_a_record_that_cannot_be_read_is_logged_counted_and_skipped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.init("x")
    builder = BatchBuilder()
    builder.append(b"\x00\x00\x00\x01x", b"garbage")
    builder.append(b"\x00\x00\x00\x01x", b"\x00\x63of a later version")
    builder.append(b"garbage", b"garbage")
    builder.append(None, b"no key")
    world.log.batches[world.log.partition_for("x")].append(builder.build())
    world.restart()
    assert world.init("x") == ("NONE", 0, 1), "what was stored before is in force"
    assert world.coordinator.loader.skipped == 4
    assert "__transaction_state-1: skipped the record at offset 0" in caplog.messages[0]


def test_a_log_that_cannot_be_read_fails_its_partition_and_no_other(world: World) -> None:
    world.init("x")
    world.log.unreadable = {world.log.partition_for("x")}
    world.restart()
    assert world.init("x")[0] == "COORDINATOR_NOT_AVAILABLE"
    assert world.init("xy")[0] == "NONE"
    listed = world.coordinator.list()
    assert not isinstance(listed, ErrorCode)
    assert [each.transactional_id for each in listed] == ["xy"]
    assert list(world.coordinator.loader.failed) == [world.log.partition_for("x")]
    world.log.unreadable = set()
    world.advance(RETRY_MS)
    world.load()
    assert world.init("x") == ("NONE", 0, 1)
    assert world.coordinator.loader.failed == {}
