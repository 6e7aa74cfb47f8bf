"""The consumer's steps, numbered as in the documents that this project began with: each is a place in our code.

Steps 1 to 4 and 15 to 17 are the faces' (`tests/clients/consumer`); those of the machine are here.
"""

from __future__ import annotations

from typing import Any

import pytest

from ixion.clients.core.connection import NEVER
from ixion.clients.core.consumer.errors import LogTruncationError, NoOffsetError
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.faults import UnknownTopicError
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchRequest
from ixion.language.protocol.registry import ApiKey
from tests.clients.core.consumer_sim import TOPIC, ConsumerSimulation, places

EARLIEST = ConsumerSettings(auto_offset_reset="earliest")
A = TopicPartition(TOPIC, 0)


def reading(records: int = 20, **more: Any) -> tuple[ConsumerSimulation, ConsumerMachine]:
    """A consumer of one partition, in a calm cluster."""
    sim = ConsumerSimulation(1, trouble=0.0, partitions=1)
    for _ in range(records // 5):
        sim.logs[0].append(5)
    machine = sim.consumer(settings=EARLIEST._replace(**more))
    machine.assign([A])
    return sim, machine


def joined(sim: ConsumerSimulation, settings: ConsumerSettings = EARLIEST) -> ConsumerMachine:
    machine = sim.consumer("g", settings)
    machine.subscribe([TOPIC], None, sim.now_s)
    for _ in range(10):
        sim.poll(machine, 0.5)
    return machine


def fetches(sim: ConsumerSimulation) -> list[FetchRequest]:
    return [request for _, _, request in sim.seen if isinstance(request, FetchRequest)]


def test_step_5_the_coordinator_the_assignment_the_positions_and_the_commit() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    sim.logs[0].append(5)
    sim.group.offsets[A] = (3, -1, "")
    machine = sim.consumer("g", EARLIEST)
    machine.subscribe([TOPIC], None, sim.now_s)
    assert sim.poll(machine, 0.0) == []  # nothing of this is done in no time, and poll does not wait for it
    found: list[tuple[int, int]] = []
    while len(found) < 2:
        found += sim.poll(machine, 0.5)
    assert found == [(0, 3), (0, 4)]
    order = [api for _, api, _ in sim.seen]
    steps = [ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.OFFSET_FETCH, ApiKey.FETCH]
    assert sorted(steps, key=order.index) == steps
    sim.poll(machine, 6.0)
    assert (sim.group.generation, A, 5) in sim.group.commits


def test_step_6_and_7_completed_fetches_come_first_and_the_half_read_one_is_kept() -> None:
    sim, machine = reading()
    assert sim.poll(machine, 5.0, most=7) == [(0, offset) for offset in range(7)]
    asked = len(fetches(sim))
    assert len(machine.buffer.take(3)) == 3
    assert len(fetches(sim)) == asked
    assert machine.subscription.position(A) == 10


def test_step_8_what_is_here_or_under_way_is_not_fetched_again() -> None:
    sim, machine = reading()
    found: list[tuple[int, int]] = []
    while len(found) < 20:
        found += sim.poll(machine, 5.0, most=3)
    offsets = [part.fetch_offset for request in fetches(sim) for topic in request.topics for part in topic.partitions]
    assert offsets == sorted(set(offsets))


def test_step_8_what_waits_here_is_bounded_in_bytes() -> None:
    sim, machine = reading(2000, fetch_max_bytes=500, max_partition_fetch_bytes=200)
    sim.run(60.0)
    assert 0 < machine.buffer.bytes < 500 + 400
    assert len(fetches(sim)) < 6


def test_step_8_a_session_names_only_what_has_changed() -> None:
    sim = ConsumerSimulation(7, trouble=0.0, partitions=3, nodes=1)
    machine = sim.consumer(settings=EARLIEST)
    machine.assign(places(sim))
    sim.run(1.0)
    sim.logs[1].append(4)
    while not sim.poll(machine, 1.0):
        pass
    sim.run(1.0)
    named = [[part.partition for topic in each.topics for part in topic.partitions] for each in fetches(sim)]
    assert sorted(named[0]) == [0, 1, 2]
    in_session = [parts for request, parts in zip(fetches(sim), named, strict=True) if request.session_epoch > 0]
    assert [1] in in_session
    assert all(parts in ([], [1]) for parts in in_session)


def test_step_11_1_answers_are_taken_in_before_anything_is_sent() -> None:
    sim, machine = reading()
    sim.run(60.0, lambda: machine.buffer.has_next)
    first = fetches(sim)[0]
    sim.run(0.0)
    assert [part.fetch_offset for topic in first.topics for part in topic.partitions] == [0]
    assert machine.subscription.of(A).fetch_offset > 0


def test_step_11_2_and_11_5_a_lost_connection_gives_its_requests_back() -> None:
    sim, machine = reading(0)
    sim.run(60.0, lambda: machine.fetcher.is_flying)
    for wire in list(sim._wires):
        wire.drop()
    machine.tick(sim.now_s)
    assert not machine.fetcher.is_flying
    sim.logs[0].append(1)
    assert sim.poll(machine, 60.0) == [(0, 0)]


def test_step_11_3_and_11_8_a_fetch_goes_out_as_soon_as_its_connection_is_up() -> None:
    sim, machine = reading()
    sim.run(60.0, lambda: bool(fetches(sim)))
    assert sim.now_s < 1001.0
    assert machine.fetcher.is_flying


def test_step_11_4_poll_sleeps_until_the_next_thing_is_due() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    machine = joined(sim, EARLIEST._replace(enable_auto_commit=False))
    assert machine.group is not None
    beat_s = machine.group.wake_s
    assert sim.now_s < beat_s <= sim.now_s + 3.0
    assert machine.wake_s <= beat_s
    alone, reader = reading(0)
    alone.run(60.0, lambda: reader.fetcher.is_flying)
    oldest_s = min(connection.deadline_s for connection in reader.client.machines)
    assert alone.now_s < reader.wake_s <= oldest_s < NEVER


def test_step_11_9_a_request_that_takes_too_long_is_given_up() -> None:
    sim, machine = reading(0, request_timeout_ms=1000)
    sim.run(60.0, lambda: machine.fetcher.is_flying)
    (connection,) = [each for each in machine.client.machines if each.in_flight]
    wire = next(wire for wire in sim._wires if wire.machine is connection)
    wire.is_open = False  # it never answers
    sim._wires.remove(wire)
    sim.run(1.4)
    assert not connection.closed
    sim.run(0.3)
    assert connection.closed


def test_step_11_10_nothing_piles_up_without_polls() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    machine = joined(sim)
    before = len(machine.client.machines)
    sim.run(100.0)
    assert len(machine.client.machines) == before
    assert all(connection.in_flight <= 1 for connection in machine.client.machines)
    assert not machine.faults
    assert not machine._errands


def test_step_11_12_what_metadata_says_for_good_is_raised() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    machine = sim.consumer(settings=EARLIEST._replace(allow_auto_create_topics=False))
    machine.assign([TopicPartition("nowhere", 0), TopicPartition(TOPIC, 9)])
    machine.seek(TopicPartition("nowhere", 0), 0)
    machine.seek(TopicPartition(TOPIC, 9), 0)
    for _ in range(5):
        sim.poll(machine, 1.0)
    assert {type(fault) for fault in sim.faults} >= {UnknownTopicError}
    assert {fault.code for fault in sim.faults} >= {ErrorCode.INVALID_PARTITIONS}
    sim.run(100.0)
    assert len(machine.faults) <= 2


def test_step_12_a_rebalance_comes_before_records() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    machine = joined(sim)
    sim.logs[0].append(3)
    sim.run(1.0)
    assert machine.subscription.of(A).fetches == 1
    assert machine.group is not None
    machine.group.member.must_rejoin = True
    machine.enter(sim.now_s)
    for _ in range(100):
        duty = machine.next_duty(sim.now_s)
        if duty is not None:
            break
        sim.run(0.1)  # the automatic commit comes first
    assert duty is not None
    assert duty.kind == "revoked"
    machine.done(duty)
    machine.exit(sim.now_s)
    assert not machine.buffer.has_next
    assert sim.poll(machine, 30.0) == [(0, 0), (0, 1), (0, 2)]  # nothing was committed


def test_what_is_given_up_was_committed_up_to_the_last_record_although_a_commit_was_under_way() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    machine = joined(sim)
    sim.logs[0].append(5)
    sim.run(60.0, lambda: machine.buffer.has_next)
    assert len(machine.buffer.take(3)) == 3
    generation = sim.group.generation
    assert machine.commit_automatically(sim.now_s) is not None
    assert len(machine.buffer.take(2)) == 2
    assert machine.group is not None
    machine.group.member.must_rejoin = True
    machine.enter(sim.now_s)
    duty = None
    for _ in range(100):
        duty = machine.next_duty(sim.now_s)
        if duty is not None:
            break
        sim.run(0.1)
    assert duty is not None
    assert duty.kind == "revoked"
    assert [offset for term, place, offset in sim.group.commits if (term, place) == (generation, A)][-2:] == [3, 5]


def test_step_14_small_polls_out_of_one_fetch_cost_no_turn() -> None:
    sim, machine = reading(10)
    sim.run(60.0, lambda: machine.buffer.has_next)
    assert len(machine.buffer.take(3)) == 3
    assert not machine.is_due(sim.now_s)
    assert machine.is_due(sim.now_s + 0.01)
    while machine.buffer.take(3):
        pass
    assert machine.is_due(sim.now_s)


def test_a_farewell_does_not_wait_behind_a_join() -> None:
    """The coordinator answers the requests of a connection in order, and a join may wait for minutes."""
    sim = ConsumerSimulation(1, trouble=0.0)
    busy = joined(sim, EARLIEST._replace(enable_auto_commit=False))
    machine = sim.consumer("g", EARLIEST._replace(enable_auto_commit=False))
    machine.subscribe([TOPIC], None, sim.now_s)
    sim.poll(machine, 1.0)  # it waits for the other member, which does not poll
    assert machine.group is not None
    assert machine.group.member.is_joining
    assert busy.subscription.assigned
    machine.leave(sim.now_s, None)
    sim.run(10.0, lambda: sim.count(ApiKey.LEAVE_GROUP) > 0)
    assert all(connection.in_flight <= 1 for connection in machine.client.machines)
    sim.run(1.0)
    assert not machine.is_leaving
    assert len(sim.group.members) == 1


def test_step_13_and_16_records_that_come_within_the_time_are_returned() -> None:
    sim, machine = reading(0)
    sim.at(3.0, lambda: sim.logs[0].append(2))
    assert sim.poll(machine, 2.0) == []
    assert sim.poll(machine, 10.0) == [(0, 0), (0, 1)]


def test_step_14_the_next_fetches_are_under_way_before_poll_returns() -> None:
    sim, machine = reading(5)
    assert len(sim.poll(machine, 5.0)) == 5
    assert machine.fetcher.is_flying


def test_a_new_leader_with_other_records_is_noticed() -> None:
    """KIP-320: with a policy the consumer goes back, without one the caller decides."""
    for policy in ("earliest", "none"):
        sim = ConsumerSimulation(1, trouble=0.0, partitions=1)
        for _ in range(3):
            sim.logs[0].append(5)
        machine = sim.consumer(settings=EARLIEST._replace(auto_offset_reset=policy))
        machine.assign([A])
        machine.seek(A, 0)
        found: list[tuple[int, int]] = []
        while len(found) < 15:
            found += sim.poll(machine, 1.0)
        sim.logs[0].truncate(5)
        sim.logs[0].append(5)
        if policy == "none":
            while not sim.faults:
                assert sim.poll(machine, 1.0) == []
            assert isinstance(sim.faults[0], LogTruncationError)
            assert sim.faults[0].offset == 5
            machine.seek(A, 5)
        again: list[tuple[int, int]] = []
        while len(again) < 5:
            again += sim.poll(machine, 1.0)
        assert again == [(0, offset) for offset in range(5, 10)]


def test_a_leader_that_knows_nothing_of_what_was_read_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers -1, as Apache Kafka does for an epoch of which it has nothing."""
    sim = ConsumerSimulation(1, trouble=0.0, partitions=1)
    sim.logs[0].append(5)
    machine = sim.consumer(settings=EARLIEST)
    machine.assign([A])
    assert sim.poll(machine, 60.0) == [(0, offset) for offset in range(5)]
    monkeypatch.setattr(sim.logs[0], "end_of", lambda _epoch: -1)
    sim.logs[0].truncate(0)
    for _ in range(3):
        sim.logs[0].append(5)
    found: list[tuple[int, int]] = []
    while not found:
        found = sim.poll(machine, 1.0)
    assert found[0] == (0, 0), "from the beginning, as auto.offset.reset says"


def test_a_committed_position_is_compared_with_the_leader_as_well() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    sim.logs[0].append(5)
    sim.group.offsets[A] = (9, 0, "")  # four records that the leader of epoch 1 does not have
    sim.logs[0].epoch = 1
    sim.logs[0].append(1)
    machine = sim.consumer("g", EARLIEST)
    machine.assign([A])
    assert sim.poll(machine, 60.0) == [(0, 5)]


@pytest.mark.parametrize(("policy", "first"), [("earliest", 5), ("none", None)])
def test_an_offset_that_is_gone(policy: str, first: int | None) -> None:
    sim, machine = reading(20)
    machine.settings = machine.settings._replace(auto_offset_reset=policy)
    again = sim.consumer(settings=EARLIEST._replace(auto_offset_reset=policy))
    sim.logs[0].start = 5
    again.assign([A])
    again.seek(A, 2)
    found = sim.poll(again, 60.0)
    if first is None:
        assert isinstance(sim.faults[0], NoOffsetError)
    else:
        assert found[0] == (0, first)
