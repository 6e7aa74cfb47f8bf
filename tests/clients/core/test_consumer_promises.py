"""What a caller may rely on: what is committed was processed, and what was handed out is handed out once."""

from __future__ import annotations

import logging

import pytest

from ixion.clients.core.consumer.errors import CommitFailedError, RebalanceInProgressError
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from tests.clients.core.consumer_sim import TOPIC, TOPIC_ID, ConsumerSimulation, places
from tests.clients.core.sim_served import ServedCoordinator

EARLIEST = ConsumerSettings(auto_offset_reset="earliest")
KINDS = {
    "eager": EARLIEST._replace(partition_assignment_strategy=("range",)),
    "cooperative": EARLIEST._replace(partition_assignment_strategy=("cooperative-sticky",)),
    "consumer": EARLIEST._replace(group_protocol="consumer"),
}
LATER = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)


def cluster(seed: int, kind: str = "eager", *, partitions: int = 2, trouble: float = 0.0) -> ConsumerSimulation:
    sim = ConsumerSimulation(seed, partitions=partitions, trouble=trouble)
    if kind == "consumer":
        sim.group = ServedCoordinator(sim, TOPIC_ID)
    return sim


def member(sim: ConsumerSimulation, settings: ConsumerSettings) -> ConsumerMachine:
    machine = sim.consumer("g", settings)
    machine.subscribe([TOPIC], None, sim.now_s)
    if settings.group_protocol == "consumer":
        assert machine.group is not None
        machine.group.member.member_id = f"member-{len(sim.machines)}"
    return machine


def joined(sim: ConsumerSimulation, settings: ConsumerSettings = EARLIEST) -> ConsumerMachine:
    machine = member(sim, settings)
    while not machine.subscription.assigned:
        sim.poll(machine, 1.0)
    return machine


def committed(sim: ConsumerSimulation) -> dict[int, int]:
    return {place.partition: stored[0] for place, stored in sim.group.offsets.items()}


def close(sim: ConsumerSimulation, machine: ConsumerMachine) -> None:
    """As both faces do it."""
    machine.commit_automatically(sim.now_s, latest=True)
    sim.run(30.0, lambda: not machine.is_committing)
    machine.leave(sim.now_s, None)
    sim.run(30.0, lambda: not machine.is_leaving)
    machine.close(sim.now_s)
    sim.machines.remove(machine)


def rest(sim: ConsumerSimulation, members: list[ConsumerMachine]) -> list[tuple[int, int]]:
    """What they read until all is read and the group is at rest."""
    found: list[tuple[int, int]] = []
    quiet = 0
    while quiet < 5:
        more = [each for machine in members for each in sim.poll(machine, 2.0, most=50)]
        found += more
        quiet = 0 if more else quiet + 1
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_an_automatic_commit_names_only_what_the_caller_has_processed(kind: str, seed: int) -> None:
    """A process that dies in the middle of a batch must not have committed its rest."""
    sim = cluster(seed, kind, trouble=0.1 if seed else 0.0)
    machine = member(sim, KINDS[kind]._replace(auto_commit_interval_ms=10, request_timeout_ms=5000))
    processed: dict[int, int] = {}
    for _ in range(60):
        for log in sim.logs:
            log.append(sim.choose.randrange(1, 9))
        found = sim.poll(machine, sim.choose.choice([0.0, 0.02, 0.3]), most=sim.choose.randrange(1, 12))
        sim.run(sim.choose.choice([0.0, 0.05]))  # the caller is busy with the batch: it may die here
        for partition, offset in committed(sim).items():
            assert offset <= processed.get(partition, 0), "committed, and not processed"
        for partition, offset in found:
            processed[partition] = max(processed.get(partition, 0), offset + 1)
    assert sum(committed(sim).values()) > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_a_clean_rebalance_hands_out_nothing_twice(kind: str, seed: int) -> None:
    sim = cluster(seed, kind, partitions=4)
    settings = KINDS[kind]._replace(auto_commit_interval_ms=300)
    members = [joined(sim, settings)]
    found: list[tuple[int, int]] = []
    for step in range(100):
        for log in sim.logs:
            log.append(sim.choose.randrange(1, 4))
        if step in (20, 50):
            members.append(member(sim, settings))
        if step == 80:
            found += rest(sim, members)  # a commit in the middle of a join is refused
            close(sim, members.pop(0))
        for machine in members:
            found += sim.poll(machine, sim.choose.choice([0.0, 0.01, 0.1]), most=3)
    found += rest(sim, members)
    assert len(found) == len(set(found)), "twice, though no broker had trouble"
    assert len(found) == sum(len(log.offsets) for log in sim.logs)


@pytest.mark.parametrize("code", LATER, ids=lambda code: code.name)
def test_the_last_commit_of_all_is_retried(code: ErrorCode) -> None:
    sim = cluster(1, partitions=1)
    machine = joined(sim)
    sim.logs[0].append(5)
    assert sim.poll(machine, 5.0) == [(0, offset) for offset in range(5)]
    sim.group.refusals.extend([code, code])
    close(sim, machine)
    assert committed(sim) == {0: 5}


def test_the_last_commit_replaces_one_under_way_that_would_not_be_retried() -> None:
    sim = cluster(1, partitions=1)
    machine = joined(sim)
    sim.logs[0].append(5)
    sim.poll(machine, 5.0)
    sim.group.refusals.append(ErrorCode.NOT_COORDINATOR)
    assert machine.commit_automatically(sim.now_s) is not None
    close(sim, machine)
    assert committed(sim) == {0: 5}


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_commit_before_a_revocation_is_retried(kind: str) -> None:
    sim = cluster(1, kind)
    for log in sim.logs:
        log.append(5)
    settings = KINDS[kind]._replace(auto_commit_interval_ms=3_600_000)
    first = joined(sim, settings)
    for _ in range(10):
        sim.poll(first, 1.0)
    sim.group.refusals.extend([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2)
    second = member(sim, settings)
    while not second.subscription.assigned:
        assert not sim.poll(second, 0.5)
        assert not sim.poll(first, 0.5)
    for _ in range(5):
        assert not sim.poll(second, 0.5), "the second member reads what the first has read"
        assert not sim.poll(first, 0.5)


def test_a_last_commit_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    sim = cluster(1, partitions=1)
    machine = joined(sim)
    sim.logs[0].append(5)
    sim.poll(machine, 5.0)
    sim.group.refusals.append(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with caplog.at_level(logging.WARNING):
        close(sim, machine)
    assert "the last automatic commit failed, so records will be read again" in caplog.text


def test_automatic_commits_that_are_refused_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """No call raises the reason, and nothing would be committed for as long as the consumer reads."""
    sim = cluster(1, partitions=1)
    machine = joined(sim, EARLIEST._replace(auto_commit_interval_ms=100))
    for phase, refused in enumerate([True, False, True]):
        sim.group.refusals.clear()
        sim.group.refusals.extend([ErrorCode.GROUP_AUTHORIZATION_FAILED] * 100 * refused)
        for _ in range(5):
            sim.logs[0].append(1)
            sim.poll(machine, 5.0)
            sim.run(0.2)
        assert caplog.text.count("automatic commits are refused") == (2 if phase == 2 else 1)
    assert "'g'" in caplog.text


@pytest.mark.parametrize("last", [False, True], ids=["periodic", "last"])
def test_a_coordinator_that_does_not_know_the_topic_yet_is_asked_again(last: bool) -> None:
    """It has just started. The offsets are not committed, and the consumer must not believe that they are."""
    sim = cluster(1, partitions=1)
    machine = joined(sim)
    sim.logs[0].append(5)
    sim.poll(machine, 5.0)
    sim.group.refusals.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not last:
        assert machine.commit_automatically(sim.now_s) is not None
        sim.run(5.0, lambda: not machine.is_committing)
        assert committed(sim) == {}
        assert not machine.committed
    close(sim, machine)
    assert committed(sim) == {0: 5}


def test_the_last_commit_is_repeated_although_the_metadata_lacks_the_topic() -> None:
    """Found by seed 120849 of the simulator: the metadata, too, came from a broker that had just started."""
    sim = cluster(1, partitions=1)
    machine = joined(sim)
    sim.logs[0].append(5)
    sim.poll(machine, 5.0)
    sim.group.refusals.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    errand = machine.commit_automatically(sim.now_s, latest=True)
    assert errand is not None
    machine.client.cluster.topics.clear()
    sim.run(5.0, lambda: errand.is_done)
    assert errand.fault is None
    assert committed(sim) == {0: 5}


def test_partitions_of_a_deleted_topic_do_not_hold_up_a_revocation() -> None:
    sim = cluster(1, partitions=1)
    machine = joined(sim)
    sim.logs[0].append(5)
    sim.poll(machine, 5.0)
    sim.group.refusals.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    begun_s = sim.now_s
    close(sim, machine)
    assert sim.now_s - begun_s < 5.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_goes_on_when_its_coordinator_is_shut_down(kind: str) -> None:
    """Its node is out of the metadata then; that must not keep the member from asking who coordinates now."""
    sim = cluster(1, kind)
    settings = KINDS[kind]._replace(auto_commit_interval_ms=100)
    machine = joined(sim, settings)
    generation = sim.group.generation
    sim.shut_down(0)
    for log in sim.logs:
        log.append(3)
    found: list[tuple[int, int]] = []
    for _ in range(80):
        found += sim.poll(machine, 1.0)
    assert sorted(found) == [(partition, offset) for partition in range(2) for offset in range(3)]
    assert committed(sim) == {0: 3, 1: 3}
    assert sim.group.generation == generation  # the member kept its place
    asked = [node for node, api, _ in sim.seen if api == ApiKey.FIND_COORDINATOR]
    assert len(asked) < 10


def test_a_coordinator_out_of_reach_is_looked_for_with_pauses() -> None:
    sim = cluster(1)
    joined(sim)
    sim.shut_down(0)
    sim.group.node = 0  # the others still name it
    before = sim.count(ApiKey.FIND_COORDINATOR)
    sim.run(30.0)
    assert 10 < sim.count(ApiKey.FIND_COORDINATOR) - before < 60


def test_paused_partitions_do_not_take_the_room_of_the_others() -> None:
    sim = ConsumerSimulation(1, trouble=0.0, partitions=3, nodes=1)
    for log in sim.logs[:2]:
        for _ in range(40):
            log.append(5)
    machine = sim.consumer(settings=EARLIEST._replace(fetch_max_bytes=500, max_partition_fetch_bytes=300))
    machine.assign(places(sim))
    sim.run(5.0)
    assert machine.buffer.bytes >= 500
    machine.subscription.pause(TopicPartition(TOPIC, 0))
    machine.subscription.pause(TopicPartition(TOPIC, 1))
    sim.logs[2].append(4)
    assert sim.poll(machine, 5.0) == [(2, offset) for offset in range(4)]
    held = machine.buffer.bytes
    sim.run(5.0)
    assert machine.buffer.bytes == held < 500 + 2 * 2 * 300  # bounded all the same


@pytest.mark.parametrize("other", [TOPIC, "created-later"])
def test_another_assignment_leaves_no_question_behind(other: str) -> None:
    """The position of the first was being looked for, which kept its topic in use while nobody read it."""
    sim = ConsumerSimulation(1, trouble=0.0, partitions=2)
    machine = sim.consumer(settings=EARLIEST)
    machine.assign([TopicPartition(other, 0), TopicPartition("created-later", 1)])
    sim.run(0.0)  # poll(0)
    machine.assign([TopicPartition(TOPIC, 1)])
    sim.run(5.0)
    assert sim.count(ApiKey.METADATA) < 5
    sim.logs[1].append(1)
    assert sim.poll(machine, 5.0) == [(1, 0)]


def test_a_commit_during_a_rebalance_can_be_repeated() -> None:
    """The member still owns its partitions: nothing has failed, and the message says what to do."""
    sim = cluster(1)
    machine = joined(sim, EARLIEST._replace(enable_auto_commit=False))
    sim.logs[0].append(5)
    sim.poll(machine, 5.0)
    sim.group.refusals.append(ErrorCode.REBALANCE_IN_PROGRESS)
    commit = machine.commit(None)
    sim.run(5.0, lambda: commit.is_done)
    with pytest.raises(RebalanceInProgressError, match="poll, then commit again"):
        commit.check()
    assert machine.subscription.partitions == places(sim)
    sim.poll(machine, 5.0)
    again = machine.commit({TopicPartition(TOPIC, 0): 5})
    sim.run(5.0, lambda: again.is_done)
    again.check()


def test_a_commit_while_joining_is_told_to_wait() -> None:
    sim = cluster(1)
    machine = joined(sim, KINDS["cooperative"]._replace(enable_auto_commit=False))
    assert machine.group is not None
    machine.group.member.must_rejoin = True
    machine.enter(sim.now_s)
    machine.next_duty(sim.now_s)
    assert machine.group.member.is_joining
    commit = machine.commit({TopicPartition(TOPIC, 0): 0})
    sim.run(5.0, lambda: commit.is_done)
    with pytest.raises(RebalanceInProgressError):
        commit.check()


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_the_answer_to_a_commit_of_an_old_generation_does_not_end_the_new_one(code: ErrorCode) -> None:
    sim = cluster(1)
    machine = joined(sim, KINDS["cooperative"]._replace(enable_auto_commit=False))
    assert machine.group is not None
    sim.group.refusals.append(code)
    commit = machine.commit({TopicPartition(TOPIC, 0): 0})
    machine.tick(sim.now_s)  # on its way
    machine.group.member.generation += 1  # and meanwhile the member has joined anew
    sim.run(1.0, lambda: commit.is_done)
    with pytest.raises(RebalanceInProgressError):
        commit.check()
    assert not machine.group.member.has_lost


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_commit_of_a_removed_member_fails(code: ErrorCode) -> None:
    sim = cluster(1)
    machine = joined(sim, EARLIEST._replace(enable_auto_commit=False))
    assert machine.group is not None
    sim.group.refusals.append(code)
    commit = machine.commit({TopicPartition(TOPIC, 0): 0})
    sim.run(5.0, lambda: commit.is_done)
    with pytest.raises(CommitFailedError):
        commit.check()
    assert machine.group.member.has_lost


@pytest.mark.parametrize("refusal", ["no such partition", "no right to it"])
def test_a_partition_that_cannot_be_read_does_not_hold_up_the_others(
    refusal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets an error for it, and goes on with the rest."""
    sim = cluster(1, partitions=3)
    for log in sim.logs:
        log.append(2)
    missing = 99 if refusal == "no such partition" else 1
    if missing == 1:
        real = sim._refusal
        code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        monkeypatch.setattr(
            sim, "_refusal", lambda node, number, *more: code if number == 1 else real(node, number, *more)
        )
    machine = sim.consumer(None, EARLIEST)
    machine.assign([TopicPartition(TOPIC, number) for number in (missing, 0, 2)])
    found = [each for _ in range(10) for each in sim.poll(machine, 1.0)]
    assert sorted(found) == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert sim.faults


def test_a_lookup_of_the_caller_fails_at_once() -> None:
    sim = cluster(1)
    machine = sim.consumer(None, EARLIEST)
    lookup = machine.list_offsets(dict.fromkeys([*places(sim), TopicPartition(TOPIC, 99)], -1))
    sim.run(5.0, lambda: lookup.is_done)
    with pytest.raises(KafkaError, match="partitions 0 to 1, not 99"):
        lookup.check()
