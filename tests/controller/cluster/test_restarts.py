"""Brokers that restart while there is no controller: the next one sees it by their broker epochs.

Every test runs twice: with the epochs beside the ISR, and without them, as Apache Kafka writes states.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from ixion.broker.controller.cluster import fenced_tree, partition_machine
from ixion.broker.metadata import paths
from ixion.broker.metadata.topic_node import PartitionState, encode_partition_state
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import NO_LOG
from tests.controller.cluster.league import League, until

T0 = ("t", 0)
Ends = Mapping[int, tuple[int, int]]


@pytest.fixture(params=[True, False], ids=["epochs", "zxids"], autouse=True)
def with_epochs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the states in the tree have the epochs of the ISR members."""

    def encode(state: PartitionState) -> bytes:
        return encode_partition_state(state._replace(isr_epochs={}))

    given: bool = request.param
    if not given:
        for module in (fenced_tree, partition_machine):
            monkeypatch.setattr(module, "encode_partition_state", encode)
    return given


def play(story: Callable[[League], Awaitable[None]]) -> None:
    async def run() -> None:
        league = League(4)
        await league.open()
        await league.begin(1)
        await league.create("t", [[2, 3, 4]])
        await story(league)
        await league.settle()
        await league.check()
        await league.close()

    asyncio.run(asyncio.wait_for(run(), 60))


async def between_controllers(league: League, *restarted: int, ends: Ends | None = None) -> None:
    """The controller is lost, these brokers come back with a new registration, and broker 4 is elected."""
    await league.kill(1)
    for number in restarted:
        await league.bounce(number)
    for number, end in (ends or {}).items():
        league.brokers[number].ends[T0] = end
    await league.begin(4)


def keeps(league: League, *brokers: int) -> None:
    """They will say that they have kept their logs since their present registration."""
    for number in brokers:
        league.brokers[number].kept_since = league.brokers[number].epoch


async def partition_epoch(league: League) -> int:
    return (await league.outside.get(paths.partition_state(*T0))).stat.version


def test_a_leader_that_restarted_between_two_controllers_does_not_lead_on() -> None:
    async def story(league: League) -> None:
        await between_controllers(league, 2)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3, 4)), "its log may be empty"
        assert await league.propose(T0, [3, 4, 2], {2: league.brokers[2].epoch}) is ErrorCode.NONE, "it fetches again"

    play(story)


def test_a_follower_that_restarted_between_two_controllers_leaves_the_isr() -> None:
    async def story(league: League) -> None:
        await between_controllers(league, 3)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (2, (2, 4)), "it may have nothing of what was acknowledged"

    play(story)


@pytest.mark.parametrize("number", [2, 3], ids=["leader", "follower"])
def test_a_member_that_has_kept_its_logs_stays(number: int) -> None:
    async def story(league: League) -> None:
        before = await partition_epoch(league)
        keeps(league, number)
        await between_controllers(league, number)
        assert await partition_epoch(league) == before

    play(story)


def test_a_member_that_has_kept_its_logs_leads_when_the_others_turn_out_to_be_dead() -> None:
    """The others are registered, but dead, and lost what they had not synced."""

    async def story(league: League) -> None:
        keeps(league, 3)
        await between_controllers(league, 3)
        await league.kill(2)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3, 4))

    play(story)


def test_only_members_that_do_not_say_that_they_kept_their_logs_leave() -> None:
    async def story(league: League) -> None:
        keeps(league, 3)
        await between_controllers(league, 2, 3)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3, 4))

    play(story)


def test_logs_that_were_kept_since_a_younger_registration_only_are_not_trusted() -> None:
    """It lost its logs, registered, was killed, and registered again: the second time it kept what was left."""

    async def story(league: League) -> None:
        await league.kill(1)
        await league.bounce(2)
        keeps(league, 2)
        await league.bounce(2)
        await league.begin(4)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3, 4))

    play(story)


def test_the_first_write_of_a_new_controller_takes_the_restarted_member_out() -> None:
    """Otherwise that write would hide the restart, if the controller is lost right after it."""

    async def story(league: League) -> None:
        before = await partition_epoch(league)
        await league.kill(1)
        await league.kill(3)
        await league.bounce(2)
        await league.begin(4)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (4, (4,))
        assert await partition_epoch(league) == before + 1

    play(story)


async def taken_in_by_a_controller_that_did_not_hear(league: League, number: int) -> None:
    """The broker is back before the controller writes that its earlier life is in sync."""
    others = [each for each in (2, 3, 4) if each != number]
    assert await league.propose(T0, others) is ErrorCode.NONE
    earlier = league.brokers[number].epoch
    for cancel in league.term.watches:
        cancel()
    await league.bounce(number)
    assert await league.propose(T0, [*others, number], {number: earlier}) is ErrorCode.NONE
    await between_controllers(league)


def test_an_isr_that_was_written_after_a_restart_does_not_hide_it(with_epochs: bool) -> None:
    async def story(league: League) -> None:
        await taken_in_by_a_controller_that_did_not_hear(league, 3)
        state = await league.state(T0)
        assert state.isr == ((2, 4) if with_epochs else (2, 4, 3)), "a state without epochs is younger"

    play(story)


def test_an_isr_that_was_written_after_a_restart_is_true_of_a_member_that_has_kept_its_logs() -> None:
    async def story(league: League) -> None:
        keeps(league, 3)
        await taken_in_by_a_controller_that_did_not_hear(league, 3)
        assert (await league.state(T0)).isr == (2, 4, 3)

    play(story)


def test_a_write_of_apache_kafka_is_read_by_its_age(with_epochs: bool) -> None:
    """It writes states without the epochs that were there."""

    async def story(league: League) -> None:
        await league.kill(1)
        await league.bounce(3)
        state = await league.state(T0)
        assert bool(state.isr_epochs) == with_epochs
        await league.outside.set(paths.partition_state(*T0), encode_partition_state(state._replace(isr_epochs={})))
        await league.bounce(4)
        await league.begin(4)
        assert (await league.state(T0)).isr == (2, 3)

    play(story)


def test_where_every_broker_restarted_the_longest_log_leads_whatever_they_say() -> None:
    """A directory that was restored from a backup may still say that nothing was lost."""

    async def story(league: League) -> None:
        keeps(league, 2, 3, 4)
        await between_controllers(league, 2, 3, 4, ends={2: (0, 5), 3: (0, 9), 4: (0, 9)})
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3, 4))

    play(story)


def test_nothing_is_written_for_brokers_that_ran_on() -> None:
    async def story(league: League) -> None:
        before = await partition_epoch(league)
        await between_controllers(league)
        assert await partition_epoch(league) == before

    play(story)


def test_a_restart_that_a_controller_saw_counts_once() -> None:
    async def story(league: League) -> None:
        await league.kill(2)
        await league.restart(2)
        assert await league.propose(T0, [3, 4, 2], {2: league.brokers[2].epoch}) is ErrorCode.NONE
        before = await partition_epoch(league)
        await between_controllers(league)
        assert await partition_epoch(league) == before, "it is in sync again, which was written after it registered"

    play(story)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({2: (0, 9), 3: (0, 9), 4: (0, 9)}, None),  # a clean restart of the whole cluster
        ({}, None),  # Apache Kafka's brokers do not say where their logs end
        ({2: NO_LOG, 3: (0, 9), 4: (0, 8)}, (3, (3,))),  # an empty disk
        ({2: (0, 9), 3: NO_LOG, 4: (0, 9)}, (2, (2, 4))),
    ],
    ids=["equal", "unknown", "leader-empty", "follower-empty"],
)
def test_the_longest_log_leads_where_every_broker_restarted(
    ends: Ends, expected: tuple[int, tuple[int, ...]] | None
) -> None:
    async def story(league: League) -> None:
        before = await partition_epoch(league)
        await between_controllers(league, 2, 3, 4, ends=ends)
        state = await league.state(T0)
        if expected is None:
            assert await partition_epoch(league) == before
            assert (state.leader, state.isr) == (2, (2, 3, 4))
        else:
            assert (state.leader, state.isr) == expected

    play(story)


@pytest.mark.parametrize("again", [False, True], ids=["this controller", "the next one"])
@pytest.mark.parametrize(
    ("isr", "silent", "ends", "expected"),
    [
        ([2, 3, 4], 2, {2: NO_LOG, 3: (0, 9), 4: (0, 8)}, (3, (3,))),
        ([2, 3], 3, {2: NO_LOG, 3: (0, 9), 4: (0, 5)}, (3, (3,))),
        ([2], 2, {2: NO_LOG, 3: (0, 5), 4: (0, 3)}, (3, (3,))),
        ([2, 3, 4], 2, {2: (0, 9), 3: (0, 9), 4: (0, 9)}, (2, (2, 3, 4))),
    ],
    ids=["leader", "follower", "last", "equal"],
)
def test_there_is_no_leader_before_all_that_restarted_say_what_they_have(
    isr: list[int], silent: int, ends: Ends, expected: tuple[int, tuple[int, ...]], again: bool
) -> None:
    """The controller cannot reach one of them, which may have the only log, or an empty disk."""

    async def story(league: League) -> None:
        if len(isr) < 3:
            assert await league.propose(T0, isr) is ErrorCode.NONE
        league.brokers[silent].silent = True
        await between_controllers(league, 2, 3, 4, ends=ends)
        assert (await league.state(T0)).leader == -1
        await league.controller.leaders.elect([T0], False)
        assert (await league.state(T0)).leader == -1, "nor by an election of the preferred replica"
        if again:
            await league.kill(4)
            await league.restart(4)
            league.brokers[4].ends[T0] = ends[4]
            await league.begin(3)
            assert (await league.state(T0)).leader == -1
        league.brokers[silent].silent = False
        await until(lambda: league.term.cluster.leaderships[T0].leader != -1)
        await league.settle()
        state = await league.state(T0)
        assert state.leader == expected[0]
        assert again or state.isr == expected[1]

    play(story)


def test_a_move_does_not_end_before_all_that_restarted_say_what_they_have() -> None:
    """It would elect the target, whose disk may be empty, and delete the others."""

    async def story(league: League) -> None:
        league.brokers[3].silent = True
        await between_controllers(league, 2, 3, 4, ends={2: NO_LOG, 3: (0, 9), 4: (0, 8)})
        assert (await league.controller.reassignments.alter({T0: (2,)}, True))[T0] is None
        await league.settle()
        assert (await league.state(T0)).leader == -1
        assert set((await league.topic("t")).partitions[0].all) == {2, 3, 4}
        league.brokers[3].silent = False
        await until(lambda: league.term.cluster.leaderships[T0].leader != -1)
        await league.settle()
        assert (await league.state(T0)).leader == 3
        assert await league.propose(T0, [3, 2], {2: league.brokers[2].epoch}) is ErrorCode.NONE, "it has fetched"
        await league.settle()
        assert (await league.topic("t")).partitions[0].all == (2,)

    play(story)


def test_a_move_that_waited_ends_without_another_change_of_the_isr() -> None:
    async def story(league: League) -> None:
        league.brokers[3].silent = True
        await between_controllers(league, 2, 3, 4, ends={2: (0, 9), 3: (0, 9), 4: (0, 9)})
        assert (await league.controller.reassignments.alter({T0: (2, 4)}, True))[T0] is None
        league.brokers[3].silent = False
        await until(lambda: league.term.cluster.replicas(T0).all == (2, 4))

    play(story)


def test_a_move_is_not_cancelled_while_one_of_its_new_replicas_may_have_the_only_log() -> None:
    async def story(league: League) -> None:
        moves = league.controller.reassignments
        assert (await moves.alter({T0: (2, 3)}, True))[T0] is None
        await league.settle()
        assert (await moves.alter({T0: (3, 4)}, True))[T0] is None
        await league.settle()
        assert await league.propose(T0, [2, 4], {4: league.brokers[4].epoch}) is ErrorCode.NONE
        league.brokers[2].silent = True
        await between_controllers(league, 2, 4, ends={2: NO_LOG, 4: (0, 9)})
        refusal = (await league.controller.reassignments.alter({T0: None}, True))[T0]
        assert refusal is not None
        assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert "no leader" in str(refusal)
        league.brokers[2].silent = False
        await until(lambda: league.term.cluster.leaderships[T0].leader == 4)

    play(story)


@pytest.mark.parametrize("isr", [[2, 3, 4], [2]], ids=["all", "last"])
def test_an_operator_can_end_the_wait_and_gets_the_longest_log_that_is_left(isr: list[int]) -> None:
    async def story(league: League) -> None:
        if len(isr) < 3:
            assert await league.propose(T0, isr) is ErrorCode.NONE
        league.brokers[2].silent = True
        await between_controllers(league, 2, 3, 4, ends={2: (0, 9), 3: (0, 7), 4: (0, 8)})
        assert await league.controller.leaders.elect([T0], True) == {T0: ErrorCode.NONE}
        await league.settle()
        state = await league.state(T0)
        assert (state.leader, state.isr) == (4, (4,))

    play(story)


def test_a_broker_that_goes_is_not_waited_for() -> None:
    async def story(league: League) -> None:
        league.brokers[2].silent = True
        await between_controllers(league, 2, 3, 4, ends={2: (0, 9), 3: (0, 8), 4: (0, 9)})
        assert (await league.state(T0)).leader == -1
        await league.kill(2)
        await until(lambda: league.term.cluster.leaderships[T0].leader != -1)
        await league.settle()
        state = await league.state(T0)
        assert (state.leader, state.isr) == (4, (4,))

    play(story)


def test_the_last_replica_in_sync_is_compared_with_the_others_before_it_leads_on() -> None:
    async def story(league: League) -> None:
        assert await league.propose(T0, [2]) is ErrorCode.NONE
        await between_controllers(league, 2, ends={2: NO_LOG, 3: (0, 5), 4: (0, 3)})
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3,))

    play(story)


def test_a_partition_with_one_live_replica_is_led_by_it() -> None:
    async def story(league: League) -> None:
        await league.kill(3)
        before = await league.state(T0)
        assert await league.propose(T0, [2]) is ErrorCode.NONE
        await league.kill(1)
        await league.kill(4)
        await league.bounce(2)
        await league.begin(2)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (2, (2,)), before

    play(story)
