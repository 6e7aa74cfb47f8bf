"""What a share consumer does when something goes wrong, one thing at a time, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.clients.core.consumer.errors import ConsumerUseError
from ixion.clients.core.share.acknowledgement import ACCEPT, GAP, REJECT, RELEASE, RENEW, Acknowledgement
from ixion.clients.core.share.errors import LockLostError, ShareGroupsUnsupportedError
from ixion.clients.core.share.machine import ShareMachine
from ixion.clients.core.share.settings import EXPLICIT, RECORD_LIMIT, ShareSettings
from ixion.clients.metadata import TopicPartition
from ixion.clients.share.record import ShareRecord
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from tests.clients.core.consumer_sim import TOPIC
from tests.clients.core.share_sim import LOCK_S, ShareSimulation

BY_HAND = ShareSettings(share_acknowledgement_mode=EXPLICIT, request_timeout_ms=5_000)


def ready(records: int = 10, settings: ShareSettings = BY_HAND, **more: Any) -> tuple[ShareSimulation, ShareMachine]:
    """A member of a group in a calm cluster, with records of one batch to take."""
    sim = ShareSimulation(1, trouble=0.0, **{"partitions": 1, **more})
    for log in sim.logs:
        log.append(records)
    return sim, sim.member(settings)


def taken(sim: ShareSimulation, machine: ShareMachine, most: int = 500, count: int = 1) -> list[ShareRecord]:
    found: list[ShareRecord] = []
    for _ in range(20):
        found += sim.take(machine, 1.0, most)
        if len(found) >= count:
            return found
    raise AssertionError(f"only {len(found)} records")


def codes(results: list[Acknowledgement]) -> list[ErrorCode | None]:
    assert all(result.is_done for result in results)
    return [None if result.error is None else result.error.code for result in results]


def test_each_kind_of_acknowledgement_ends_or_returns_the_record() -> None:
    sim, machine = ready(4)
    first, second, third, fourth = taken(sim, machine, count=4)
    assert [record.delivery_count for record in (first, second, third, fourth)] == [1] * 4
    results = [
        sim.decide(machine, record, kind)
        for record, kind in ((first, ACCEPT), (second, RELEASE), (third, REJECT), (fourth, RENEW))
    ]
    sim.wait(machine)
    assert codes(results) == [None] * 4
    assert sim.ends() == {0: ACCEPT, 2: REJECT}
    (again,) = taken(sim, machine)
    assert (again.offset, again.delivery_count) == (1, 2)


def test_a_release_carries_its_delay() -> None:
    sim, machine = ready(2)
    first, second = taken(sim, machine, count=2)
    sim.decide(machine, first, RELEASE, 2_500)
    sim.decide(machine, second, RELEASE)
    sim.wait(machine)
    (part,) = sim.acknowledged[-1].topics[0].partitions
    assert [(each.first_offset, each.delay_ms) for each in part.acknowledgement_batches] == [(0, 2_500), (1, 0)]
    now_s = sim.now_s
    assert [record.offset for record in taken(sim, machine)] == [1]
    assert [record.offset for record in taken(sim, machine)] == [0]
    assert sim.now_s - now_s >= 2.4


def test_implicit_acceptance_rides_along_with_the_next_fetch() -> None:
    sim, machine = ready(4, ShareSettings())
    taken(sim, machine, count=4)
    sim.logs[0].append(1)
    assert sim.count(ApiKey.SHARE_ACKNOWLEDGE) == 0
    assert len(taken(sim, machine)) == 1
    assert sim.ends() == dict.fromkeys(range(4), ACCEPT)
    assert sim.count(ApiKey.SHARE_ACKNOWLEDGE) == 0


def test_acknowledgements_do_not_wait_for_a_poll() -> None:
    """A handler that works for minutes must not make its earlier records run out of their locks."""
    sim, machine = ready(2)
    first, _ = taken(sim, machine, count=2)
    sim.decide(machine, first, ACCEPT)
    assert machine.wake_s <= sim.now_s + 0.05, "a thread that sleeps until then must be woken"
    sim.run(0.2)
    assert sim.ends() == {0: ACCEPT}


def test_locks_of_held_records_are_renewed_until_the_caller_is_taken_for_stuck() -> None:
    sim, machine = ready(3, BY_HAND._replace(max_poll_interval_ms=60_000))
    records = taken(sim, machine, most=2, count=2)  # a third one waits in the buffer
    sim.run(50.0)
    assert all(slot.owner is not None for slot in sim.slots[0].values())
    sim.run(11.0)
    assert machine.member.generation < 0
    assert sim.slots[0][2].owner is None, "what the caller did not get is released"
    sim.run(LOCK_S)
    assert codes([sim.decide(machine, record, ACCEPT) for record in records]) == [ErrorCode.INVALID_RECORD_STATE] * 2
    assert [record.delivery_count for record in taken(sim, machine, count=3)] == [2, 2, 2]


@pytest.mark.parametrize("how", ["by hand", "implicitly"])
def test_a_record_that_is_accepted_while_its_renewal_is_due_is_accepted_only(how: str) -> None:
    """Found by seed 120056 of the simulator: both went in one request, and the broker took the renewal."""
    sim, machine = ready(3, BY_HAND if how == "by hand" else ShareSettings())
    records = taken(sim, machine, count=3)
    (acquisition,) = machine.fetcher.acquisitions
    acquisition.renew_all()
    if how == "by hand":
        sim.decide(machine, records[1], ACCEPT)
    else:
        machine.accept_held(sim.now_s)
    entries, _ = acquisition.take_unsent(sim.now_s)
    sent = [(entry.item.first, entry.item.last, entry.item.kind) for entry in entries]
    assert sent == ([(1, 1, ACCEPT), (0, 0, RENEW), (2, 2, RENEW)] if how == "by hand" else [(0, 2, ACCEPT)])


def test_without_renewals_a_late_acknowledgement_fails_at_once() -> None:
    sim, machine = ready(1, BY_HAND._replace(auto_renew=False))
    (record,) = taken(sim, machine)
    sim.run(LOCK_S + 1)
    asked = len(sim.seen)
    result = sim.decide(machine, record, ACCEPT)
    assert isinstance(result.error, LockLostError)
    assert len(sim.seen) == asked


def test_a_renewal_by_hand_keeps_one_record() -> None:
    sim, machine = ready(2, BY_HAND._replace(auto_renew=False))
    first, second = taken(sim, machine, count=2)
    sim.run(LOCK_S - 2)
    renewed = sim.decide(machine, first, RENEW)
    sim.wait(machine)
    sim.run(4.0)
    results = [renewed, sim.decide(machine, first, ACCEPT), sim.decide(machine, second, ACCEPT)]
    sim.wait(machine)
    assert codes(results) == [None, None, ErrorCode.INVALID_RECORD_STATE]


def test_a_renewal_that_comes_too_late_leaves_the_record_to_its_handler() -> None:
    """It is an error of the lock then, and not one of the program that acknowledges it next."""
    sim, machine = ready(1, BY_HAND._replace(auto_renew=False))
    (record,) = taken(sim, machine)
    sim.now_s += LOCK_S + 1  # it worked, and the machine has not run since
    results = [sim.decide(machine, record, RENEW), sim.decide(machine, record, ACCEPT)]
    assert [type(result.error) for result in results] == [LockLostError] * 2


def test_the_end_of_the_last_lock_of_an_idle_session_wakes_the_machine() -> None:
    """Its leader has moved, and a record of the old one is still held: when its lock ends, the session is closed."""
    sim, machine = ready(1, BY_HAND._replace(auto_renew=False))
    taken(sim, machine)
    locked_until_s = sim.now_s + LOCK_S
    machine.fetcher.assign([])
    machine.tick(sim.now_s)
    assert machine.fetcher.wake_s <= locked_until_s


def test_one_record_to_blame_does_not_take_the_others_with_it() -> None:
    sim, machine = ready(8)
    records = taken(sim, machine, count=8)
    sim.slots[0][5].owner = None  # an administrator, a short lock: the broker has given it away
    results = [sim.decide(machine, record, ACCEPT) for record in records]
    sim.wait(machine)
    assert codes(results) == [ErrorCode.INVALID_RECORD_STATE if at == 5 else None for at in range(8)]
    assert sim.ends() == {offset: ACCEPT for offset in range(8) if offset != 5}
    assert sim.count(ApiKey.SHARE_ACKNOWLEDGE) <= 1 + 2 * 3


@pytest.mark.parametrize("forgets", ["the session", "its epoch"])
def test_after_a_lost_session_a_new_one_is_opened_and_old_locks_are_gone(forgets: str) -> None:
    sim, machine = ready(3)
    records = taken(sim, machine, count=3)
    ((key, session),) = sim.sessions.items()
    if forgets == "the session":
        sim._end(key)
    else:
        session.epoch += 5
    results = [sim.decide(machine, record, ACCEPT) for record in records[:2]]
    sim.wait(machine)
    expected = ErrorCode.SHARE_SESSION_NOT_FOUND if forgets == "the session" else ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert codes(results) == [expected] * 2
    assert codes([sim.decide(machine, records[2], ACCEPT)]) == [ErrorCode.INVALID_RECORD_STATE]
    assert [record.delivery_count for record in taken(sim, machine, count=3)] == [2, 2, 2]


def test_acknowledgements_without_an_answer_fail_and_their_records_come_back() -> None:
    sim, machine = ready(2)
    records = taken(sim, machine, count=2)
    results = [sim.decide(machine, record, ACCEPT) for record in records]
    machine.hurry(sim.now_s)
    machine.tick(sim.now_s)
    for wire in list(sim._wires):
        if wire.node == sim.leaders[0] and wire.machine.in_flight:
            wire.drop()  # the request is on its way
    sim.wait(machine)
    assert all(error == ErrorCode.NETWORK_EXCEPTION for error in codes(results))
    assert {record.offset for record in taken(sim, machine, count=2)} == {0, 1}


def test_unsent_acknowledgements_of_a_lost_connection_fail() -> None:
    sim, machine = ready(2)
    records = taken(sim, machine, count=2)
    for wire in list(sim._wires):
        wire.drop()
    results = [sim.decide(machine, record, ACCEPT) for record in records]
    sim.wait(machine)
    assert codes(results) == [ErrorCode.INVALID_RECORD_STATE] * 2
    assert {record.delivery_count for record in taken(sim, machine, count=2)} == {2}


def test_after_a_change_of_leaders_records_come_from_the_new_one() -> None:
    sim, machine = ready(2)
    records = taken(sim, machine, count=2)
    old = sim.leaders[0]
    sim.leaders[0] = (old + 1) % 3
    sim.logs[0].epoch += 1
    for slot in sim.slots[0].values():
        slot.owner = None  # locks are not stored
    results = [sim.decide(machine, record, ACCEPT) for record in records]
    sim.wait(machine)
    assert all(code is not None for code in codes(results))
    again = taken(sim, machine, count=2)
    assert [record.delivery_count for record in again] == [2, 2]
    results = [sim.decide(machine, record, ACCEPT) for record in again]
    sim.wait(machine)
    assert codes(results) == [None, None]


def test_what_cannot_be_stored_for_now_is_sent_again() -> None:
    sim, machine = ready(2)
    records = taken(sim, machine, count=2)
    faults = iter(["not stored", "not stored"])
    plain = sim.answer_on
    sim.answer_on = lambda wire, request, fault: plain(  # type: ignore[method-assign]
        wire, request, next(faults, "") if type(request).__name__ == "ShareAcknowledgeRequest" else fault
    )
    results = [sim.decide(machine, record, ACCEPT) for record in records]
    sim.wait(machine)
    assert codes(results) == [None, None]
    assert sim.ends() == {0: ACCEPT, 1: ACCEPT}


def test_with_a_strict_limit_no_more_is_locked_and_one_broker_is_asked_at_a_time() -> None:
    sim, machine = ready(10, BY_HAND._replace(share_acquire_mode=RECORD_LIMIT), partitions=3)
    sim.leaders[:] = [0, 1, 2]
    found = taken(sim, machine, most=4)
    locked = sum(slot.owner is not None for slots in sim.slots for slot in slots.values())
    assert len(found) == locked == 4
    assert all(request.share_acquire_mode == 1 for request in sim.fetched)


def test_closing_stores_what_was_acknowledged_and_releases_the_rest() -> None:
    sim, machine = ready(3)
    first, _, _ = taken(sim, machine, count=3)
    result = sim.decide(machine, first, ACCEPT)
    sim.close(machine)
    assert codes([result]) == [None]
    assert sim.ends() == {0: ACCEPT}
    assert not sim.sessions
    assert not sim.coordinator.epochs
    assert [record.delivery_count for record in taken(sim, sim.member(BY_HAND), count=2)] == [2, 2]


@pytest.mark.parametrize("accepts", [True, False])
def test_closing_accepts_implicitly_unless_the_caller_failed(accepts: bool) -> None:
    sim, machine = ready(3, ShareSettings())
    taken(sim, machine, count=3)
    sim.close(machine, accepts=accepts)
    assert sim.ends() == (dict.fromkeys(range(3), ACCEPT) if accepts else {})


def test_closing_with_no_broker_in_reach_ends_with_an_error_for_each() -> None:
    sim, machine = ready(2)
    records = taken(sim, machine, count=2)
    results = [sim.decide(machine, record, ACCEPT) for record in records]
    sim.down.update(range(3))
    for wire in list(sim._wires):
        wire.drop()
    sim.close(machine, 10.0)
    assert all(code is not None for code in codes(results))


def test_a_poll_that_ends_early_loses_nothing() -> None:
    """A poll of no length, or one that was cancelled: what its fetch brings is there for the next one."""
    sim, machine = ready(3)
    while not machine.fetcher.assigned:
        sim.run(1.0, lambda: bool(machine.fetcher.assigned))
    assert sim.take(machine, 0.001) == []  # it connects
    sim.run(1.0)
    machine.enter(500, sim.now_s + 5.0, sim.now_s)
    machine.tick(sim.now_s)
    machine.exit(sim.now_s)  # cancelled
    sim.run(2.0)
    assert len(sim.take(machine, 0.0)) == 3


def test_nothing_is_fetched_while_nobody_polls() -> None:
    sim, machine = ready(3)
    taken(sim, machine, count=3)
    sim.logs[0].append(3)
    before = len(sim.fetched)
    sim.run(30.0)
    assert len(sim.fetched) == before


def test_a_record_is_acknowledged_once_and_by_its_own_consumer() -> None:
    sim, machine = ready(2)
    first, second = taken(sim, machine, count=2)
    sim.decide(machine, first, ACCEPT)
    with pytest.raises(ConsumerUseError, match="acknowledged already"):
        sim.decide(machine, first, RELEASE)
    with pytest.raises(ConsumerUseError, match="another consumer"):
        sim.decide(sim.member(BY_HAND), second, ACCEPT)


@pytest.mark.parametrize("how", ["old", "off"])
def test_a_broker_without_share_groups_is_named_within_five_seconds(how: str) -> None:
    sim = ShareSimulation(1, trouble=0.0)
    if how == "old":
        sim.apis = [api for api in sim.apis if api != ApiKey.SHARE_GROUP_HEARTBEAT]
    else:
        sim.coordinator.refuses = ErrorCode.UNSUPPORTED_VERSION
    machine = sim.member()
    began_s = sim.now_s
    assert sim.take(machine, 5.0) == []
    (fault,) = sim.faults
    assert isinstance(fault, ShareGroupsUnsupportedError)
    assert "share groups (KIP-932) need" in fault.message
    assert sim.now_s - began_s < 5


def test_a_fault_of_the_group_reaches_the_caller() -> None:
    sim = ShareSimulation(1, trouble=0.0)
    sim.coordinator.refuses = ErrorCode.GROUP_AUTHORIZATION_FAILED
    machine = sim.member()
    sim.take(machine, 5.0)
    assert [fault.code for fault in sim.faults] == [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    assert isinstance(sim.faults[0], KafkaError)


def test_outcomes_are_told_in_ranges() -> None:
    sim, machine = ready(4, ShareSettings())
    machine.keeps_told = True
    taken(sim, machine, count=4)
    machine.accept_held(sim.now_s)
    sim.wait(machine)
    (told,) = machine.told
    assert told[:5] == (TOPIC, 0, 0, 3, "accept")
    assert told.error is None
    assert GAP == 0


def test_an_unsubscribed_member_leaves_and_may_still_acknowledge() -> None:
    sim, machine = ready(2)
    first, _ = taken(sim, machine, count=2)
    machine.unsubscribe(sim.now_s)
    sim.run(2.0)
    assert not sim.coordinator.epochs
    result = sim.decide(machine, first, ACCEPT)
    sim.wait(machine)
    assert codes([result]) == [None]
    assert result.place == TopicPartition(TOPIC, 0)


@pytest.mark.parametrize("by", ["the next poll", "the close"])
def test_what_was_lost_while_it_was_processed_is_no_silent_success(by: str) -> None:
    """With implicit acknowledgement, too: the records are delivered again, and the caller hears why."""
    sim, machine = ready(3, ShareSettings())
    machine.keeps_told = by == "the close"
    taken(sim, machine, count=3)
    for wire in list(sim._wires):
        wire.drop()
    sim.run(0.1)
    if by == "the close":
        sim.close(machine)
    else:
        assert [record.delivery_count for record in taken(sim, machine, count=3)] == [2, 2, 2]
    fault = machine.take_first_fault()
    assert isinstance(fault, LockLostError)
    for said in machine.told:
        assert (said.first_offset, said.last_offset, said.kind, said.error) == (0, 2, "accept", fault)
    assert machine.settled == 3


def test_what_was_lost_can_no_longer_be_released_or_accepted_twice() -> None:
    sim, machine = ready(2, ShareSettings())
    first, _ = taken(sim, machine, count=2)
    for wire in list(sim._wires):
        wire.drop()
    sim.run(0.1)
    assert codes([sim.decide(machine, first, RELEASE)]) == [ErrorCode.INVALID_RECORD_STATE]
    machine.accept_held(sim.now_s)
    machine.accept_held(sim.now_s)
    assert machine.settled == 2
    assert machine.fetcher.acquisitions == [] or not any(each.held for each in machine.fetcher.acquisitions)


def test_one_lost_record_does_not_end_the_renewals_of_the_others() -> None:
    """Retention may delete a record that a member holds."""
    sim, machine = ready(4)
    records = taken(sim, machine, count=4)
    sim.slots[0][2].end = REJECT
    sim.slots[0][2].owner = None
    sim.run(3 * LOCK_S)
    results = [sim.decide(machine, record, ACCEPT) for record in records]
    sim.wait(machine)
    assert codes(results) == [None, None, ErrorCode.INVALID_RECORD_STATE, None]
