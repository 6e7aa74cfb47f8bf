"""Which broker is the controller, and which replica leads a partition."""

from __future__ import annotations

import pytest

from ixion.broker.controller.election import elect
from ixion.broker.controller.leader_rules import elect_leader, without_leader
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import decode_controller, decode_controller_epoch
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.errors import BadVersionError
from ixion.broker.metadata.image import PartitionImage
from ixion.broker.metadata.node import Operation, Result, Set
from tests.metadata.awaited import Awaited, run


def test_the_first_broker_is_the_controller_and_the_others_learn_its_id() -> None:
    store = EmbeddedStore(IN_MEMORY)
    first, second = store.open_session(1000), store.open_session(1000)
    won = run(elect(Awaited(first), 1, 5))
    assert (won.controller_id, won.epoch) == (1, 1)
    assert run(elect(Awaited(second), 2, 6)) == won
    assert decode_controller(second.get(paths.CONTROLLER).data) == 1
    store.close()


def test_each_controller_has_an_epoch_of_its_own() -> None:
    store = EmbeddedStore(IN_MEMORY)
    for epoch in (1, 2, 3):
        session = store.open_session(1000)
        assert run(elect(Awaited(session), epoch, 0)).epoch == epoch
        session.close()
    session = store.open_session(1000)
    assert decode_controller_epoch(session.get(paths.CONTROLLER_EPOCH).data) == 3
    store.close()


def test_of_two_at_the_same_time_only_one_gets_through() -> None:
    """Between its look at the epoch and its bid, another one is elected and gone again."""
    store = EmbeddedStore(IN_MEMORY)
    slow, quick = store.open_session(1000), store.open_session(1000)
    tries = 0
    bid = slow.multi

    def overtaken(operations: list[Operation]) -> list[Result]:
        nonlocal tries
        tries += 1
        if tries == 1:
            run(elect(Awaited(quick), 2, 0))
            quick.close()
        return bid(operations)

    slow.multi = overtaken  # type: ignore[assignment,method-assign]
    won = run(elect(Awaited(slow), 1, 0))
    assert (won.controller_id, won.epoch, tries) == (1, 2, 2)
    store.close()


def test_a_deposed_controller_cannot_go_on_counting() -> None:
    store = EmbeddedStore(IN_MEMORY)
    session = store.open_session(1000)
    run(elect(Awaited(session), 1, 0))
    version = session.get(paths.CONTROLLER_EPOCH).stat.version
    with pytest.raises(BadVersionError):
        session.multi([Set(paths.CONTROLLER_EPOCH, b"9", version - 1)])
    store.close()


def partition(leader: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3)) -> PartitionImage:
    return PartitionImage(number=0, leader=leader, leader_epoch=4, isr=isr, replicas=replicas)


@pytest.mark.parametrize(
    ("isr", "live", "unclean", "expected"),
    [
        ((1, 2, 3), (1, 2, 3), False, (1, (1, 2, 3))),
        ((3, 2), (1, 2, 3), False, (2, (3, 2))),  # in the order of the assignment, not of the ISR
        ((1, 2), (2, 3), False, (2, (2,))),
        ((1,), (2, 3), False, None),
        ((1,), (3, 2), True, (2, (2,))),
        ((1,), (), True, None),
    ],
)
def test_leaders(
    isr: tuple[int, ...], live: tuple[int, ...], unclean: bool, expected: tuple[int, tuple[int, ...]] | None
) -> None:
    elected = elect_leader(partition(-1, isr), live, unclean)
    assert (None if elected is None else (elected.leader, elected.isr)) == expected
    assert elected is None or elected.leader_epoch == 5


def test_losing_a_leader_is_an_epoch_too() -> None:
    lost = without_leader(partition(1, (1, 2)), (1,))
    assert (lost.leader, lost.leader_epoch, lost.isr, lost.offline) == (-1, 5, (1, 2), (1,))
