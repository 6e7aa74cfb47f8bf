"""EndTxn: both protocols, repetitions, latecomers, and what finds nothing to end."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.txn.snapshot import LAST_EPOCH, MAX_EPOCH
from ixion.broker.coordinators.txn.states import State
from ixion.language.model.errors import ErrorCode
from tests.coordinators.txn.world import World

T0 = ("t", 0)
T1 = ("t", 1)


def begun(world: World, version: int = 2) -> None:
    """The id "x" of producer 0 at epoch 0, with a transaction open in two partitions."""
    world.init("x")
    assert world.add("x", 0, 0, T0, T1, version=version) == "NONE"


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_in_all_its_partitions_and_raises_the_epoch(world: World, commit: bool) -> None:
    begun(world)
    assert world.end("x", 0, 0, commit) == ("NONE", 0, 1)
    assert world.markers.outcomes() == [(T0, 0, 1, commit), (T1, 0, 1, commit)]
    assert world.state("x").state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    assert world.state("x").partitions == frozenset()


def test_older_clients_keep_their_epoch(world: World) -> None:
    begun(world, version=0)
    assert world.end("x", 0, 0, version=0) == ("NONE", 0, 0)
    assert world.markers.outcomes() == [(T0, 0, 0, True), (T1, 0, 0, True)]
    assert world.add("x", 0, 0, T1, version=0) == "NONE"
    assert world.end("x", 0, 0, False, version=0) == ("NONE", 0, 0)


@pytest.mark.parametrize("commit", [True, False])
def test_a_repetition_gets_the_same_answer_and_writes_nothing(world: World, commit: bool) -> None:
    begun(world)
    first = world.end("x", 0, 0, commit)
    written = len(world.markers.written), len(world.log.batches[1])
    assert world.end("x", 0, 0, commit) == first
    assert (len(world.markers.written), len(world.log.batches[1])) == written
    refused = "INVALID_TXN_STATE" if commit else "PRODUCER_FENCED"
    assert world.end("x", 0, 0, not commit) == (refused, -1, -1)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_an_end_held_back_from_an_earlier_transaction_changes_nothing_later(
    world: World, commit: bool, late: bool
) -> None:
    begun(world)
    world.end("x", 0, 0, commit)
    world.add("x", 0, 1, T0)
    before = world.state("x")
    assert world.end("x", 0, 0, late) == ("PRODUCER_FENCED", -1, -1)
    assert world.state("x") == before
    assert world.end("x", 0, 1, True) == ("NONE", 0, 2)
    assert world.end("x", 0, 0, late) == ("PRODUCER_FENCED", -1, -1)


TABLE = [
    (State.EMPTY, False, -1, "PRODUCER_FENCED"),
    (State.EMPTY, False, 0, "raise"),
    (State.EMPTY, True, -1, "PRODUCER_FENCED"),
    (State.EMPTY, True, 0, "INVALID_TXN_STATE"),
    (State.COMPLETE_ABORT, False, -1, "same"),
    (State.COMPLETE_ABORT, False, 0, "raise"),
    (State.COMPLETE_ABORT, True, -1, "PRODUCER_FENCED"),
    (State.COMPLETE_ABORT, True, 0, "INVALID_TXN_STATE"),
    (State.COMPLETE_COMMIT, False, -1, "INVALID_TXN_STATE"),
    (State.COMPLETE_COMMIT, False, 0, "raise"),
    (State.COMPLETE_COMMIT, True, -1, "same"),
    (State.COMPLETE_COMMIT, True, 0, "INVALID_TXN_STATE"),
    *(
        (state, commit, 1, "PRODUCER_FENCED")
        for state in (State.EMPTY, State.COMPLETE_ABORT)
        for commit in (True, False)
    ),
]


@pytest.mark.parametrize(("state", "commit", "ahead", "outcome"), TABLE)
def test_where_nothing_is_open(world: World, state: State, commit: bool, ahead: int, outcome: str) -> None:
    world.init("x")
    world.force("x", state=state, epoch=5, client_version=2)
    code, producer_id, epoch = world.end("x", 0, 5 + ahead, commit)
    if outcome == "raise":
        assert (code, producer_id, epoch) == ("NONE", 0, 6)
        assert world.state("x").state is State.COMPLETE_ABORT
    elif outcome == "same":
        assert (code, producer_id, epoch) == ("NONE", 0, 5)
    else:
        assert code == outcome
        assert world.state("x").state is state
    assert world.markers.written == []


@pytest.mark.parametrize("commit", [True, False])
def test_a_producer_that_was_replaced_by_an_older_client_is_fenced(world: World, commit: bool) -> None:
    world.init("x")
    world.init("x")
    world.add("x", 0, 1, T0, version=0)
    world.end("x", 0, 1, commit, version=0)
    assert world.end("x", 0, 0, commit) == ("PRODUCER_FENCED", -1, -1)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("state", [State.EMPTY, State.COMPLETE_ABORT, State.COMPLETE_COMMIT])
def test_where_nothing_is_open_for_older_clients(world: World, state: State, commit: bool) -> None:
    world.init("x")
    world.force("x", state=state)
    ended_so = state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    assert world.end("x", 0, 0, commit, version=0)[0] == ("NONE" if ended_so else "INVALID_TXN_STATE")


def test_strangers_end_nothing(world: World) -> None:
    begun(world)
    before = world.state("x")
    assert world.end("x", 1, 0)[0] == "INVALID_PRODUCER_ID_MAPPING"
    assert world.end("x", 0, 1)[0] == "PRODUCER_FENCED"
    assert world.end("x", 0, 1, version=0)[0] == "PRODUCER_FENCED"
    assert world.end("nobody", 0, 0)[0] == "INVALID_PRODUCER_ID_MAPPING"
    assert world.end("", 0, 0)[0] == "INVALID_REQUEST"
    assert world.state("x") == before


def test_the_last_epoch_ends_with_a_new_producer_id(world: World) -> None:
    world.init("x")
    world.force("x", epoch=LAST_EPOCH)
    world.add("x", 0, LAST_EPOCH, T0)
    world.markers.holding = True
    assert world.end("x", 0, LAST_EPOCH) == ("NONE", 1, 0)
    assert world.end("x", 0, LAST_EPOCH)[0] == "CONCURRENT_TRANSACTIONS"
    world.markers.let_go()
    assert world.markers.outcomes() == [(T0, 0, MAX_EPOCH, True)], "the markers are still the old producer's"
    assert world.end("x", 0, LAST_EPOCH) == ("NONE", 1, 0), "a repetition is recognised by the old id"
    assert world.add("x", 1, 0, T0) == "NONE"
    assert world.end("x", 0, LAST_EPOCH)[0] == "INVALID_PRODUCER_ID_MAPPING"


def test_no_producer_gets_in_while_markers_are_on_their_way(world: World) -> None:
    begun(world)
    world.markers.holding = True
    assert world.end("x", 0, 0) == ("NONE", 0, 1), "the outcome is stored; the markers are not waited for"
    assert world.end("x", 0, 0)[0] == "CONCURRENT_TRANSACTIONS"
    assert world.end("x", 0, 0, False)[0] == "INVALID_TXN_STATE"
    assert world.end("x", 0, 1)[0] == world.end("x", 0, 1, False)[0] == "PRODUCER_FENCED"
    assert world.add("x", 0, 1, T0) == "CONCURRENT_TRANSACTIONS"
    assert world.init("x")[0] == "CONCURRENT_TRANSACTIONS"
    world.markers.let_go()
    assert world.add("x", 0, 1, T0) == "NONE"


def test_an_outcome_that_cannot_be_stored_sends_no_markers(world: World) -> None:
    begun(world)
    world.log.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end("x", 0, 0) == ("NOT_COORDINATOR", -1, -1)
    assert world.markers.written == []
    world.log.fail_with = ErrorCode.NONE
    assert world.end("x", 0, 0, False) == ("NONE", 0, 1)
