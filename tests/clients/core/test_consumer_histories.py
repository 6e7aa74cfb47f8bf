"""The consumer machine in histories from a seed: no offset handed out twice within an assignment, and none skipped."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.clients.core.consumer.group import ASSIGNED
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.core.consumer.subscription import Assigned
from ixion.clients.metadata import TopicPartition
from tests.clients.core.consumer_sim import TOPIC, TOPIC_ID, ConsumerSimulation, places
from tests.clients.core.sim_served import ServedCoordinator

EARLIEST = ConsumerSettings(auto_offset_reset="earliest", enable_auto_commit=False, request_timeout_ms=5_000)


def grow(sim: ConsumerSimulation) -> None:
    for log in sim.logs:
        if sim.choose.random() < 0.5:
            log.append(sim.choose.randrange(1, 9), gap=sim.choose.choice([0, 0, 0, 1, 3]))
    if sim.choose.random() < 0.1:
        sim.move(sim.choose.randrange(len(sim.logs)))


def history(seed: int, given_settings: ConsumerSettings, *, racks: bool = False) -> ConsumerSimulation:
    """One consumer reads all partitions while everything happens to it; then it must have read all there is."""
    sim = ConsumerSimulation(seed, racks=racks)
    machine = sim.consumer(settings=given_settings)
    machine.assign(places(sim))
    found: list[tuple[int, int]] = []
    for _ in range(40):
        grow(sim)
        found += sim.poll(machine, sim.choose.choice([0.0, 0.01, 0.3, 2.0]), most=sim.choose.randrange(1, 12))
        for place in places(sim):
            if sim.choose.random() < 0.1:
                machine.subscription.of(place).paused = not machine.subscription.is_paused(place)
    sim.trouble = 0.0
    for place in places(sim):
        machine.subscription.resume(place)
    while len(found) < sum(len(log.offsets) for log in sim.logs):
        more = sim.poll(machine, 300.0)
        assert more, f"{len(found)} records, and no more come"
        found += more
    for number, log in enumerate(sim.logs):
        assert [offset for partition, offset in found if partition == number] == log.offsets
    assert sim.poll(machine) == []
    assert machine.buffer.bytes == 0
    return sim


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_every_record_is_handed_out_once_and_in_order(seed: int) -> None:
    history(seed, EARLIEST)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_also_from_followers(seed: int) -> None:
    history(seed, EARLIEST._replace(client_rack="here"), racks=True)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_also_with_room_for_little(seed: int) -> None:
    sim = history(seed, EARLIEST._replace(fetch_max_bytes=200, max_partition_fetch_bytes=100))
    assert sim.machines[0].fetcher.requests > 5


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_is_the_same_history(seed: int) -> None:
    first, second = history(seed, EARLIEST), history(seed, EARLIEST)
    assert first.now_s == second.now_s
    assert len(first.seen) == len(second.seen)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_after_a_seek_reading_goes_on_there(seed: int) -> None:
    sim = ConsumerSimulation(seed)
    machine = sim.consumer(settings=EARLIEST)
    machine.assign(places(sim))
    expected: dict[int, int | None] = dict.fromkeys(range(len(sim.logs)), 0)  # the next offset that may come
    for _ in range(40):
        grow(sim)
        number = sim.choose.randrange(len(sim.logs))
        if sim.choose.random() < 0.3 and sim.logs[number].offsets:
            target = sim.choose.choice(sim.logs[number].offsets)
            machine.seek(TopicPartition(TOPIC, number), target)
            expected[number] = target
        for partition, offset in sim.poll(machine, sim.choose.choice([0.0, 0.05, 1.0])):
            lowest = expected[partition]
            assert lowest is not None
            assert offset == min(each for each in sim.logs[partition].offsets if each >= lowest)
            expected[partition] = offset + 1


class Reader:
    """A member of a group, and what it was given within each assignment."""

    def __init__(self, sim: ConsumerSimulation, given_settings: ConsumerSettings) -> None:
        self.sim = sim
        self.machine: ConsumerMachine = sim.consumer("g", given_settings)
        self.machine.subscribe([TOPIC], None, sim.now_s)
        if given_settings.group_protocol == "consumer":
            assert self.machine.group is not None
            self.machine.group.member.member_id = f"member-{len(sim.machines)}-{sim.now_s}"  # the same in every run
        self.next: dict[TopicPartition, tuple[Assigned, int]] = {}  # within which assignment, and the next offset

    def poll(self, seconds: float) -> None:
        machine = self.machine
        for partition, offset in self.sim.poll(machine, seconds):
            place = TopicPartition(TOPIC, partition)
            state = machine.subscription.assigned[place]
            before, known = self.next.get(place, (None, 0))
            if before is state:
                offsets = self.sim.logs[partition].offsets
                assert offset == min(each for each in offsets if each >= known), "twice or skipped"
            self.next[place] = state, offset + 1
        if self.sim.choose.random() < 0.3:
            machine.commit(None, retries=False)


def come_to_rest(sim: ConsumerSimulation, readers: list[Reader]) -> None:
    every = places(sim)
    for _ in range(2000):
        for reader in readers:
            reader.poll(1.0)
        held = sorted(place for reader in readers for place in reader.machine.subscription.assigned)
        is_calm = not any(reader.machine.has_news or needs_join(reader.machine) for reader in readers)
        if held == every and is_calm:
            break
    else:
        raise AssertionError("the group does not come to rest")
    assert all(len(reader.machine.subscription.assigned) == len(every) // len(readers) for reader in readers)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky"])
def test_members_of_a_group_share_all_partitions(strategy: str, seed: int) -> None:
    sim = ConsumerSimulation(seed, partitions=4, trouble=0.15)
    settings = EARLIEST._replace(partition_assignment_strategy=(strategy,), max_poll_interval_ms=120_000)
    readers = [Reader(sim, settings)]
    for step in range(60):
        grow(sim)
        if step in (10, 25):
            readers.append(Reader(sim, settings))
        if step == 40:
            leave(sim, readers.pop(0).machine)
        for reader in readers:
            reader.poll(sim.choose.choice([0.0, 0.05, 1.0]))
    sim.trouble = 0.0
    come_to_rest(sim, readers)


@pytest.mark.parametrize("seed", range(4))
def test_members_of_a_consumer_group_share_all_partitions(seed: int) -> None:
    """KIP-848, with a coordinator that loses, delays, forgets and lies."""
    sim = ConsumerSimulation(seed, partitions=6, trouble=0.15)
    coordinator = sim.group = ServedCoordinator(sim, TOPIC_ID)
    settings = EARLIEST._replace(group_protocol="consumer", max_poll_interval_ms=120_000)
    readers = [Reader(sim, settings)]
    for step in range(60):
        grow(sim)
        if step in (10, 25):
            readers.append(Reader(sim, settings))
        if step == 40:
            leave(sim, readers.pop(0).machine)
        for reader in readers:
            reader.poll(sim.choose.choice([0.0, 0.05, 1.0, 3.0]))
    sim.trouble = 0.0
    come_to_rest(sim, readers)
    assert sorted(map(len, (member.owned for member in coordinator.served.values()))) == [3, 3]
    assert {epoch for member in coordinator.served.values() for epoch in [member.epoch]} == {coordinator.epoch}
    for reader in readers:
        commit = reader.machine.commit(None)
        sim.run(5.0, lambda commit=commit: commit.is_done)  # type: ignore[misc]
        assert commit.fault is None
        positions = reader.machine.subscription.positions()
        assert {place: sim.group.offsets[place][0] for place in positions} == positions


def leave(sim: ConsumerSimulation, machine: ConsumerMachine) -> None:
    machine.leave(sim.now_s, None)
    sim.run(20.0, lambda: not machine.is_leaving)
    machine.close(sim.now_s)
    sim.machines.remove(machine)


def needs_join(machine: ConsumerMachine) -> bool:
    assert machine.group is not None
    member = machine.group.member
    return member.must_rejoin or member.is_joining or member.assignment is not None or member.generation < 0


def test_a_caller_that_stays_away_is_given_up_and_comes_back() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    reader = Reader(sim, EARLIEST._replace(max_poll_interval_ms=10_000))
    for _ in range(20):
        reader.poll(1.0)
    assert reader.machine.subscription.partitions == places(sim)
    sim.run(9.0)
    assert len(sim.group.members) == 1
    sim.run(60.0)
    assert sim.group.members == {}
    kinds = []
    for _ in range(20):
        machine = reader.machine
        machine.enter(sim.now_s)
        while (duty := machine.next_duty(sim.now_s)) is not None:
            kinds.append((duty.kind, len(duty.places)))
            machine.done(duty)
        sim.run(0.5)
        machine.exit(sim.now_s)
    assert kinds == [("lost", 2), (ASSIGNED, 2)]


def test_heartbeats_go_out_while_the_caller_is_away() -> None:
    sim = ConsumerSimulation(1, trouble=0.0)
    reader = Reader(sim, EARLIEST)
    for _ in range(20):
        reader.poll(1.0)
    generation = sim.group.generation
    sim.run(200.0)
    assert len(sim.group.members) == 1
    reader.poll(1.0)
    assert (sim.group.generation, sim.group.state) == (generation, "stable")
