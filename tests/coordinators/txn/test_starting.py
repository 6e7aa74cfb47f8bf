"""InitProducerId with a transactional id: take-over, recovery, repetition, exhaustion."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.txn.snapshot import LAST_EPOCH
from ixion.broker.coordinators.txn.states import State
from ixion.language.model.errors import ErrorCode
from tests.coordinators.txn.world import World

T0 = ("t", 0)


def reach(world: World, epoch: int) -> None:
    """Brings the id "x" to an epoch in a settled state."""
    world.init("x")
    world.force("x", epoch=epoch)


def test_each_new_instance_gets_the_next_epoch(world: World) -> None:
    assert [world.init("x") for _ in range(3)] == [("NONE", 0, 0), ("NONE", 0, 1), ("NONE", 0, 2)]
    assert world.init("other") == ("NONE", 1, 0)


def test_a_producer_that_goes_on_may_repeat_its_request(world: World) -> None:
    world.init("x")
    assert world.init("x", 0, 0) == ("NONE", 0, 1)
    assert world.init("x", 0, 0) == ("NONE", 0, 1), "the answer was lost: the same again"
    assert world.init("x", 0, 1) == ("NONE", 0, 2)


def test_a_producer_that_was_replaced_is_fenced(world: World) -> None:
    world.init("x")
    world.init("x")
    assert world.init("x", 0, 0) == ("PRODUCER_FENCED", -1, -1)
    assert world.init("x", 99, 1) == ("PRODUCER_FENCED", -1, -1)
    assert world.state("x").epoch == 1


def test_an_id_that_was_forgotten_takes_a_producer_back(world: World) -> None:
    assert world.init("x", 55, 3) == ("NONE", 0, 0)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001, 2**31 - 1])
def test_timeouts_that_are_not_allowed(world: World, timeout_ms: int) -> None:
    assert world.init("x", timeout_ms=timeout_ms) == ("INVALID_TRANSACTION_TIMEOUT", -1, -1)
    assert world.coordinator.list() == []


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_half_an_identity_is_no_request(world: World, producer_id: int, epoch: int) -> None:
    assert world.init("x", producer_id, epoch) == ("INVALID_REQUEST", -1, -1)


def test_an_empty_id_is_no_id(world: World) -> None:
    assert world.init("") == ("INVALID_REQUEST", -1, -1)


def test_used_up_epochs_give_a_new_producer_id(world: World) -> None:
    reach(world, LAST_EPOCH)
    assert world.init("x") == ("NONE", 1, 0)
    assert world.state("x").previous_producer_id == 0


def test_a_producer_that_goes_on_from_the_last_epoch_may_repeat(world: World) -> None:
    reach(world, LAST_EPOCH)
    assert world.init("x", 0, LAST_EPOCH) == ("NONE", 1, 0)
    assert world.init("x", 0, LAST_EPOCH) == ("NONE", 1, 0)
    assert world.init("x", 0, LAST_EPOCH - 1) == ("PRODUCER_FENCED", -1, -1)


def test_the_epoch_kept_for_fencing_is_given_to_no_producer(world: World) -> None:
    reach(world, LAST_EPOCH)
    world.add("x", 0, LAST_EPOCH, T0)
    assert world.init("x", 0, LAST_EPOCH) == ("NONE", 1, 0)
    assert world.markers.outcomes() == [(T0, 0, LAST_EPOCH + 1, False)]


def test_an_open_transaction_is_aborted_for_the_newcomer(world: World) -> None:
    world.init("x")
    world.add("x", 0, 0, T0, ("t", 1))
    assert world.init("x") == ("NONE", 0, 2)
    assert world.markers.outcomes() == [(T0, 0, 1, False), (("t", 1), 0, 1, False)]
    assert world.end("x", 0, 0) == ("PRODUCER_FENCED", -1, -1)
    assert world.add("x", 0, 0, T0) == "PRODUCER_FENCED"


def test_the_newcomer_waits_where_markers_take_time(world: World) -> None:
    world.init("x")
    world.add("x", 0, 0, T0)
    world.markers.holding = True
    assert world.init("x") == ("CONCURRENT_TRANSACTIONS", -1, -1)
    assert world.init("x") == ("CONCURRENT_TRANSACTIONS", -1, -1)
    assert world.state("x").state is State.PREPARE_ABORT
    world.markers.let_go()
    assert world.init("x") == ("NONE", 0, 2)


def test_what_cannot_be_stored_has_not_happened(world: World) -> None:
    world.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.init("x") == ("COORDINATOR_NOT_AVAILABLE", -1, -1)
    assert world.coordinator.list() == []
    world.log.fail_with = ErrorCode.NONE
    assert world.init("x") == ("NONE", 1, 0)


def test_while_a_change_is_being_written_others_are_refused(world: World) -> None:
    world.init("x")
    world.log.holding = True
    assert world.init("x") == ("WAITS", -1, -1)
    assert world.init("x") == ("CONCURRENT_TRANSACTIONS", -1, -1)
    assert world.add("x", 0, 0, T0) == "CONCURRENT_TRANSACTIONS"
    world.log.let_go()
    assert world.add("x", 0, 0, T0) == "PRODUCER_FENCED"
    assert world.add("x", 0, 1, T0) == "NONE"
