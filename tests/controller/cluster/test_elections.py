"""Which replica leads, and what becomes of the ISR: each rule alone, then all of them at random."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.broker.controller.cluster import elections
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.metadata.topic_node import Replicas
from ixion.language.model.topic_partition import NO_LOG

BROKERS = st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True).map(tuple)
LIVE = st.sets(st.integers(1, 6))


def state(leader: int, *isr: int) -> Leadership:
    return Leadership(leader=leader, leader_epoch=4, isr=isr, partition_epoch=9)


def on(*brokers: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()) -> Replicas:
    return Replicas(all=brokers, adding=adding, removing=removing)


def short(found: Leadership | None) -> tuple[int, tuple[int, ...], int] | None:
    return None if found is None else (found.leader, found.isr, found.leader_epoch)


def test_a_new_partition_is_led_by_its_first_live_replica_and_all_that_live_are_in_sync() -> None:
    assert short(elections.first_leadership(on(1, 2, 3), [3, 2])) == (2, (2, 3), 0)
    assert elections.first_leadership(on(1, 2, 3), [4]) is None


@pytest.mark.parametrize(
    ("isr", "live", "unclean", "expected"),
    [
        ((3, 2), {1, 2, 3}, False, (2, (3, 2), 5)),  # in the order of the assignment, not of the ISR
        ((1, 2, 3), {2, 3}, False, (2, (2, 3), 5)),  # the dead leave the ISR
        ((1,), {2, 3}, False, None),
        ((1,), {3, 2}, True, (2, (2,), 5)),
        ((1, 3), {2, 3}, True, (3, (3,), 5)),  # one that is in sync comes first, also if unclean is allowed
        ((1,), set(), True, None),
    ],
)
def test_after_the_loss_of_a_leader(
    isr: tuple[int, ...], live: set[int], unclean: bool, expected: tuple[int, tuple[int, ...], int] | None
) -> None:
    found = elections.after_leader_loss(on(1, 2, 3), state(-1, *isr), live, unclean)
    assert short(found) == expected
    if found is not None:
        assert found.recovering == (found.leader not in isr)


def test_only_the_first_replica_is_the_preferred_one() -> None:
    assert short(elections.for_preferred(on(1, 2), state(2, 2, 1), {1, 2})) == (1, (2, 1), 5)
    assert elections.for_preferred(on(1, 2), state(2, 2), {1, 2}) is None, "not in sync"
    assert elections.for_preferred(on(1, 2), state(2, 2, 1), {2}) is None, "not alive"


def test_a_reassignment_is_led_by_a_target_replica() -> None:
    moving = on(3, 4, 1, adding=(3, 4), removing=(1,))
    assert elections.target_of(moving) == (3, 4)
    assert short(elections.for_reassignment(moving, state(1, 1, 4), {1, 3, 4})) == (4, (1, 4), 5)
    assert elections.for_reassignment(moving, state(1, 1), {1, 3, 4}) is None, "no target is in sync"
    assert elections.for_reassignment(moving, state(1, 1, 3, 4), {1}) is None, "no target is alive"


def test_a_broker_that_shuts_down_neither_leads_nor_stays_in_sync() -> None:
    assert short(elections.for_shutdown(on(1, 2, 3), state(1, 1, 2, 3), {1, 2, 3}, {1})) == (2, (2, 3), 5)
    assert short(elections.for_shutdown(on(1, 2, 3), state(1, 1, 2, 3), {1, 2, 3}, {1, 2})) == (3, (3,), 5)
    assert elections.for_shutdown(on(1, 2), state(1, 1, 2), {1, 2}, {1, 2}) is None
    assert elections.for_shutdown(on(1, 2), state(1, 1), {1, 2}, {1}) is None, "the other one is not in sync"
    assert elections.for_shutdown(on(1, 2), state(1, 1, 2), {1}, {1}) is None, "the other one is not alive"


@pytest.mark.parametrize(
    ("before", "lost", "trusted", "after"),
    [
        (state(1, 1, 2), {2}, {1}, (1, (1,), 5)),
        (state(1, 1, 2), {1}, {2}, (-1, (2,), 5)),
        (state(1, 1), {1}, {1}, (-1, (1,), 5)),  # only it has every record
        (state(-1, 1), {1}, set(), None),
        (state(1, 1, 2), {3}, {1, 2}, None),
        (state(1, 1, 2), {1, 2}, {1, 2}, (-1, (1, 2), 5)),  # whichever comes back first
        (state(1, 1, 2, 3), {1, 2}, {3}, (-1, (3,), 5)),
        (state(-1, 1, 2), {2}, set(), None),  # the other one may have lost records
        (state(-1, 1, 2), {2}, None, (-1, (1,), 5)),  # its log is deleted
    ],
)
def test_replicas_that_are_gone(
    before: Leadership, lost: set[int], trusted: set[int] | None, after: tuple[int, tuple[int, ...], int] | None
) -> None:
    assert short(elections.without_replicas(before, lost, trusted)) == after


def test_a_move_is_begun_replaced_and_called_off() -> None:
    begun = elections.reassigned_to(on(1, 2), (3, 2))
    assert begun == on(3, 2, 1, adding=(3,), removing=(1,))
    assert elections.reassigned_to(begun, (4, 2)) == on(4, 2, 1, adding=(4,), removing=(1,)), "3 is dropped"
    assert elections.reassigned_to(begun, (2, 1)) == on(2, 1), "called off"
    assert elections.reassigned_to(on(1, 2), (2, 1)) == on(2, 1), "another order is no move"
    assert elections.is_reassigned(begun, state(1, 1, 2, 3))
    assert not elections.is_reassigned(begun, state(1, 1, 2))


@given(BROKERS, BROKERS)
def test_a_move_ends_with_its_target_and_calling_it_off_with_the_replicas_before(
    before: tuple[int, ...], target: tuple[int, ...]
) -> None:
    moving = elections.reassigned_to(on(*before), target)
    assert elections.target_of(moving) == target
    assert set(moving.all) == set(before) | set(target)
    assert set(moving.adding) == set(target) - set(before)
    origin = tuple(broker for broker in before if broker not in moving.adding)
    back = elections.reassigned_to(moving, origin)
    assert (set(back.all), back.adding, back.removing) == (set(before), (), ())


RULES: list[Callable[[Replicas, Leadership, set[int]], Leadership | None]] = [
    elections.after_leader_loss,
    lambda replicas, known, live: elections.after_leader_loss(replicas, known, live, True),
    elections.for_reassignment,
    elections.for_preferred,
    lambda replicas, known, live: elections.for_shutdown(replicas, known, live, {1}),
    lambda _replicas, known, _live: elections.without_replicas(known, {2}, {1, 3}),
    lambda replicas, known, live: elections.without_restarted(replicas, known, live, {1, 2}),
]


@given(st.sampled_from(RULES), BROKERS, st.data(), LIVE)
def test_every_rule_keeps_what_must_hold(
    rule: Callable[[Replicas, Leadership, set[int]], Leadership | None],
    replicas: tuple[int, ...],
    data: st.DataObject,
    live: set[int],
) -> None:
    isr = tuple(data.draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True)))
    known = Leadership(leader=data.draw(st.sampled_from([-1, *isr])), leader_epoch=7, isr=isr, partition_epoch=3)
    found = rule(on(*replicas), known, live)
    if found is None:
        return
    assert found.leader_epoch == 8, "brokers ignore an epoch that they know"
    assert found.partition_epoch == 3, "the write is conditional on what was known"
    assert found.isr
    assert set(found.isr) <= set(replicas)
    assert found.leader == -1 or found.leader in found.isr
    if found.leader not in (-1, known.leader):
        assert found.leader in live
    assert set(found.isr) <= set(isr) or found.recovering, "nobody joins the ISR by an election"


@pytest.mark.parametrize(
    ("known", "restarted", "expected"),
    [
        (state(1, 1, 2, 3), {1}, (2, (2, 3))),  # the leader: another member leads
        (state(1, 1, 2, 3), {2}, (1, (1, 3))),  # a follower: it leaves the ISR
        (state(1, 1, 2, 3), {1, 2}, (3, (3,))),
        (state(1, 1, 2), {1, 2}, None),  # all of them: the logs must be asked
        (state(1, 1, 2), {3}, None),  # it was not in sync
        (state(1, 1, 2, 3), {2, 4}, (1, (1, 3))),
    ],
)
def test_members_that_restarted_unseen_leave_the_isr(
    known: Leadership, restarted: set[int], expected: tuple[int, tuple[int, ...]] | None
) -> None:
    found = elections.without_restarted(on(1, 2, 3), known, {1, 2, 3}, restarted)
    assert (found and (found.leader, found.isr)) == expected


@pytest.mark.parametrize(
    ("known", "ends", "expected"),
    [
        (state(1, 1, 2, 3), {1: (4, 9), 2: (4, 9), 3: (4, 9)}, None),  # a clean restart of all brokers
        (state(1, 1, 2, 3), {1: (4, 9), 2: (4, 9), 3: (4, 7)}, (1, (1, 2))),
        (state(1, 1, 2, 3), {1: NO_LOG, 2: (4, 9), 3: (4, 9)}, (2, (2, 3))),
        (state(1, 1, 2, 3), {1: (4, 9), 2: (5, 2), 3: (4, 12)}, (2, (2,))),
        (state(1, 1, 2), {1: (4, 9), 2: NO_LOG, 3: (4, 12)}, (3, (3,))),
        (state(-1, 1, 2), {1: (4, 9), 2: NO_LOG}, (1, (1,))),
        (state(1, 1, 2), {2: (4, 9)}, None),  # Apache Kafka's brokers do not say it
        (state(1, 1, 2), {1: (4, 9)}, None),
    ],
)
def test_the_longest_log_leads_where_every_member_restarted(
    known: Leadership, ends: dict[int, tuple[int, int]], expected: tuple[int, tuple[int, ...]] | None
) -> None:
    found = elections.with_most(on(1, 2, 3), known, {1, 2, 3}, ends)
    assert (found and (found.leader, found.isr)) == expected
