"""A controller over several model brokers: what becomes of partitions when brokers and topics come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ixion.broker.controller.cluster import fenced_tree, leaders
from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import decode_producer_ids
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.topic_node import PartitionState, Replicas, TopicNode, encode_partition_state, encode_topic
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import NO_LOG
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest
from tests.controller.cluster.league import League, until

T0 = ("t", 0)


def play(brokers: int, story: Callable[[League], Awaitable[None]], **settings: str) -> None:
    """Run a story with broker 1 as the controller, and look at the end whether all agree."""

    async def run() -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        league = League(brokers, settings=given)
        await league.open()
        await league.begin(1)
        await story(league)
        await league.settle()
        await league.check()
        await league.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_leader_dies_and_comes_back() -> None:
    async def story(league: League) -> None:
        assert await league.create("t", [[2, 3], [3, 2]]) is ErrorCode.NONE
        assert all(role.is_new for role in league.brokers[2].roles.values())
        await league.check()
        await league.kill(2)
        state = await league.state(T0)
        assert (state.leader, state.leader_epoch, state.isr) == (3, 1, (3,))
        follower = await league.state(("t", 1))
        assert (follower.leader, follower.leader_epoch, follower.isr) == (3, 1, (3,)), "acks=all waits for it no more"
        await league.check()
        await league.restart(2)
        assert (await league.state(T0)).leader == 3
        assert await league.propose(T0, [3, 2]) is ErrorCode.NONE
        assert (await league.state(T0)).isr == (3, 2)
        assert await league.controller.leaders.elect([T0, ("t", 1), ("u", 0)], False) == {
            T0: ErrorCode.NONE,
            ("t", 1): ErrorCode.ELECTION_NOT_NEEDED,
            ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert (await league.state(T0)).leader == 2

    play(3, story)


def test_the_last_in_sync_replica_dies_and_no_other_replica_leads() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        await league.propose(T0, [2])
        await league.kill(2)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (-1, (2,))
        elect = league.controller.leaders.elect
        assert await elect([T0], False) == {T0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
        await league.restart(2)
        assert (await league.state(T0)).leader == 2
        await league.kill(2)
        assert await elect([T0], True) == {T0: ErrorCode.NONE}
        state = await league.state(T0)
        assert (state.leader, state.isr, state.recovering) == (3, (3,), True)
        await league.settle()
        assert await elect([T0], True) == {T0: ErrorCode.ELECTION_NOT_NEEDED}

    play(3, story)


@pytest.mark.parametrize(
    ("ends", "leader"),
    [
        ({2: (1, 5), 3: (1, 9)}, 3),  # it has lost what it had not synced
        ({2: (1, 5), 3: (2, 1)}, 3),  # also by a later epoch
        ({2: (2, 5), 3: (1, 9)}, 2),  # what 3 has more was never committed
        ({2: (1, 9), 3: (1, 9)}, 2),
        ({3: (1, 9)}, 2),  # it does not say: as Apache Kafka does
        ({2: (1, 5)}, 2),
        ({2: NO_LOG, 3: (0, 3)}, 3),  # its disk was replaced
    ],
)
def test_the_last_in_sync_replica_does_not_lead_over_one_that_has_more(
    ends: dict[int, tuple[int, int]], leader: int
) -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        await league.propose(T0, [2])
        await league.kill(2)
        for number, end in ends.items():
            league.brokers[number].ends[T0] = end
        await league.restart(2)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (leader, (leader,))

    play(3, story)


@pytest.mark.parametrize("goes", [False, True], ids=["answers", "goes"])
def test_the_last_in_sync_replica_does_not_lead_before_it_says_what_it_has(goes: bool) -> None:
    """The controller cannot reach it. By the time it can, another replica may turn out to have more."""

    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        await league.propose(T0, [2])
        await league.kill(2)
        last = league.brokers[2]
        last.ends[T0], league.brokers[3].ends[T0] = (1, 5), (1, 9)
        last.silent = True
        await league.restart(2)
        assert (await league.state(T0)).leader == -1
        await league.kill(1)
        await league.begin(3)
        assert (await league.state(T0)).leader == -1, "nor under another controller"
        if goes:
            await league.kill(2)
            await until(lambda: not league.term.silent)
            assert (await league.state(T0)).leader == -1
            last.silent = False
            await league.restart(2)
        last.silent = False
        await until(lambda: league.term.cluster.leaderships[T0].leader == 3)
        assert (await league.state(T0)).isr == (3,)

    play(3, story)


def test_an_unclean_election_where_the_topic_allows_it() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]], **{"unclean.leader.election.enable": "true"})
        await league.propose(T0, [2])
        await league.kill(2)
        assert (await league.state(T0)).leader == 3

    play(3, story)


def test_a_broker_that_restarts_between_two_looks_was_gone() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        await league.bounce(2)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3,)), "what it had in memory is gone"

    play(3, story)


def test_a_request_for_an_earlier_life_is_not_sent_to_the_next_one() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        late = league.brokers[2]
        late.let_in.clear()
        stopping = asyncio.create_task(league.controller.leaders.shut_down(3, -1))
        await until(lambda: late.under_way > 0)  # LeaderAndIsr
        old = late.epoch
        late.heard.clear()
        await late.session.close()
        late.begin()
        await late.register()
        late.let_in.set()
        await league.settle()
        assert {request.broker_epoch for request in late.heard} == {late.epoch}
        assert late.epoch > old
        await stopping
        await league.kill(3)

    play(3, story)


def test_a_controller_that_stops_waits_until_the_new_leaders_have_their_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leaders, "TAKEN_OVER_S", 60.0)

    async def story(league: League) -> None:
        await league.create("t", [[1, 2, 3]])
        heir = league.brokers[2]
        heir.let_in.clear()
        stopping = asyncio.create_task(league.controller.leaders.shut_down(1, -1))
        await until(lambda: heir.under_way > 0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not stopping.done(), "its requests would end with it"
        heir.let_in.set()
        assert await stopping == []
        assert heir.roles[T0].leader == 2

    play(3, story)


def test_a_broker_that_does_not_answer_holds_up_no_shutdown_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "TAKEN_OVER_S", 0.01)

    async def story(league: League) -> None:
        await league.create("t", [[1, 2, 3]])
        league.brokers[3].let_in.clear()
        assert await league.controller.leaders.shut_down(1, -1) == []
        assert (await league.state(T0)).leader == 2
        league.brokers[3].let_in.set()

    play(3, story)


def test_a_shutdown_moves_leaders_and_says_what_is_left() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3], [3, 2]])
        await league.create("u", [[2]])
        elector = league.controller.leaders
        for broker, epoch, code in (
            (9, -1, ErrorCode.BROKER_NOT_AVAILABLE),
            (2, league.brokers[2].epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
        ):
            with pytest.raises(KafkaError) as refused:
                await elector.shut_down(broker, epoch)
            assert refused.value.code is code
        assert await elector.shut_down(2, league.brokers[2].epoch) == []
        keys = [T0, ("t", 1), ("u", 0)]
        assert [(await league.state(key)).leader for key in keys] == [3, 3, 2]
        assert [(await league.state(key)).isr for key in keys] == [(3,), (3,), (2,)]
        assert await league.propose(T0, [3, 2]) is ErrorCode.INELIGIBLE_REPLICA, "it is on its way out"
        assert await elector.shut_down(3, -1) == [T0, ("t", 1)], "there is no other replica in sync"
        await league.kill(2)
        await league.restart(2)
        assert await league.propose(T0, [3, 2]) is ErrorCode.INELIGIBLE_REPLICA, "3 itself is on its way out"
        await league.kill(3)
        await league.restart(3)

    play(3, story)


def test_a_member_that_restarted_since_it_fetched_does_not_join_the_isr() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        before = league.brokers[3].epoch
        await league.bounce(3)
        assert await league.propose(T0, [2, 3], {3: before}) is ErrorCode.INELIGIBLE_REPLICA
        assert await league.propose(T0, [2, 3], {3: league.brokers[3].epoch}) is ErrorCode.NONE
        league.brokers[2].epoch -= 1
        assert await league.propose(T0, [2]) is ErrorCode.STALE_BROKER_EPOCH
        league.brokers[2].epoch += 1

    play(3, story)


def test_a_leader_that_missed_a_change_of_its_isr_gets_a_new_epoch() -> None:
    """It waits for a LeaderAndIsr, and without one it would wait for ever: no other event would bring it one."""

    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        leader = league.brokers[2]
        before = leader.shown[T0]
        assert await league.propose(T0, [2]) is ErrorCode.NONE
        epoch = leader.roles[T0].leader_epoch
        leader.shown[T0] = before  # as if the answer and the metadata had not reached it
        assert await league.propose(T0, [2, 3]) is ErrorCode.INVALID_UPDATE_VERSION
        role = leader.roles[T0]
        assert (role.leader, role.leader_epoch, role.isr) == (2, epoch + 1, (2,))
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE

    play(3, story)


def test_topics_are_deleted_with_their_logs_and_nodes() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3], [3, 2]])
        await league.create("u", [[2]])
        (outcome, unknown) = await league.controller.topics.delete(["t", "v"])
        assert (outcome.code, unknown.code) == (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert await league.outside.children(paths.TOPICS) == ["u"]
        assert await league.outside.children(f"{paths.CONFIG}/topics") == ["u"]
        assert await league.outside.children(paths.DELETE_TOPICS) == []
        assert {key[0] for broker in league.brokers.values() for key in broker.logs} == {"u"}
        assert await league.create("t", [[3]]) is ErrorCode.NONE

    play(3, story)


def test_a_topic_with_a_replica_on_a_dead_broker_goes_when_that_broker_is_back() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        await league.kill(3)
        (outcome,) = await league.controller.topics.delete(["t"])
        assert outcome.code is ErrorCode.NONE
        assert await league.outside.children(paths.TOPICS) == ["t"]
        assert all("t" not in {key[0] for key in league.brokers[n].shown} for n in (1, 2))
        assert await league.create("t", [[2]]) is ErrorCode.TOPIC_ALREADY_EXISTS
        await league.restart(3)
        assert await league.outside.children(paths.TOPICS) == []
        assert league.brokers[3].logs == set()

    play(3, story)


def test_a_broker_that_dies_while_it_deletes_is_asked_again() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        league.brokers[3].let_in.clear()
        deleting = asyncio.get_running_loop().create_task(league.controller.topics.delete(["t"]))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not deleting.done()
        await league.kill(3)
        await deleting
        league.brokers[3].let_in.set()
        await league.restart(3)
        assert await league.outside.children(paths.TOPICS) == []

    play(3, story)


def test_deletions_that_are_asked_for_again_and_again_do_not_pile_up() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2]])
        slow = league.brokers[2]
        slow.let_in.clear()  # registered, and it does not answer
        first = asyncio.create_task(league.controller.topics.delete(["t"]))
        while "t" not in league.term.cluster.doomed:
            await asyncio.sleep(0)
        for _ in range(20):
            (outcome,) = await league.controller.topics.delete(["t"])
            assert outcome.code is ErrorCode.NONE
        assert len(league.term.deletions._waiting) == 1
        slow.let_in.set()
        await first
        assert await league.outside.children(paths.TOPICS) == []

    play(3, story)


def test_every_answer_counts_although_the_controller_was_busy_when_they_came() -> None:
    async def story(league: League) -> None:
        names = [f"t{number}" for number in range(8)]
        for name in names:
            await league.create(name, [[2]])
        slow = league.brokers[2]
        slow.let_in.clear()
        deletions = [asyncio.create_task(league.controller.topics.delete([name])) for name in names]
        while len(league.term.cluster.doomed) < len(names):
            await asyncio.sleep(0)
        async with league.term.queue.turn:  # another change takes its time
            slow.let_in.set()
            await league.term.channels.settled(2)
        await asyncio.gather(*deletions)
        assert await league.outside.children(paths.TOPICS) == []

    play(3, story)


def test_partitions_are_added() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]])
        await league.controller.topics.create_partitions("t", 3, [(3, 2), (1, 2)])
        assert [(await league.state(("t", n))).leader for n in range(3)] == [2, 3, 1]
        await league.controller.topics.create_partitions("t", 5, None)
        assert {len(each.all) for each in (await league.topic("t")).partitions.values()} == {2}

    play(3, story)


def test_a_topic_that_another_broker_wrote_gets_its_leaders() -> None:
    """Apache Kafka's brokers create topics by themselves when a client asks for one that is not there."""

    async def story(league: League) -> None:
        node = TopicNode(topic_id=b"i" * 16, partitions={0: Replicas(all=(3, 2)), 1: Replicas(all=(2, 3))})
        await league.outside.create(paths.topic("auto"), encode_topic(node))
        await league.settle()
        assert [(await league.state(("auto", n))).leader for n in range(2)] == [3, 2]
        await league.outside.create(paths.delete_topic("auto"))
        await league.settle()
        assert await league.outside.children(paths.TOPICS) == []

    play(3, story)


def test_replicas_follow_racks_and_settings_are_written_with_the_topic() -> None:
    async def run() -> None:
        league = League(4, racks=["a", "a", "b", "b"])
        await league.open()
        await league.begin(1)
        wish = NewTopic(name="t", partitions=8, replication=2, config={"retention.ms": "5"})
        (outcome,) = await league.controller.topics.create([wish])
        assert outcome.code is ErrorCode.NONE
        await league.settle()
        for replicas in (await league.topic("t")).partitions.values():
            assert {(broker + 1) // 2 for broker in replicas.all} == {1, 2}, "one in each rack"
        assert b'"retention.ms":"5"' in (await league.outside.get(paths.config("topics", "t"))).data
        await league.check()
        await league.close()

    asyncio.run(run())


def test_leadership_goes_back_to_preferred_replicas_by_itself() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]] * 4)
        await league.kill(2)
        await league.restart(2)
        for number in range(3):
            await league.propose(("t", number), [3, 2])
        league.controller.balance_soon()
        await league.settle()
        leaders = [(await league.state(("t", n))).leader for n in range(4)]
        assert leaders == [2, 2, 2, 3], "the last one is not in sync on 2"

    play(3, story)


def test_a_broker_that_leads_nearly_all_of_its_own_is_left_alone() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3]] * 4)
        await league.bounce(2)
        for number in range(4):
            await league.propose(("t", number), [3, 2])
        await league.controller.leaders.elect([("t", n) for n in range(3)], False)
        league.controller.balance_soon()
        await league.settle()
        assert (await league.state(("t", 3))).leader == 3, "one of four is 25 %"

    play(3, story, leader_imbalance_per_broker_percentage="25")


def test_replicas_move_to_another_broker() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[1, 2]])
        moves = league.controller.reassignments
        assert await moves.alter({T0: (3, 2)}, True) == {T0: None}
        await league.settle()
        assert (await league.topic("t")).partitions[0] == Replicas(all=(3, 2, 1), adding=(3,), removing=(1,))
        assert league.brokers[3].roles[T0].is_new
        await league.check()
        assert await league.propose(T0, [1, 2, 3]) is ErrorCode.NONE
        assert (await league.topic("t")).partitions[0] == Replicas(all=(3, 2))
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (2, 3)), "the leader was moved away"
        assert T0 not in league.brokers[1].logs

    play(3, story)


def test_a_move_is_called_off() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[1, 2]])
        moves = league.controller.reassignments
        await moves.alter({T0: (3, 2)}, True)
        await league.settle()
        assert await moves.alter({T0: None}, True) == {T0: None}
        await league.settle()
        assert (await league.topic("t")).partitions[0] == Replicas(all=(2, 1)), "only their order has changed"
        assert league.brokers[3].logs == set()
        (outcome,) = (await moves.alter({T0: None}, True)).values()
        assert outcome is not None
        assert outcome.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    play(3, story)


@pytest.mark.parametrize(
    ("key", "target", "any_factor", "code"),
    [
        (("u", 0), (1,), True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (T0, (), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (T0, (2, 2), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (T0, (2, 9), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (T0, (2, -1), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (T0, (1, 2, 3), False, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_moves_that_cannot_be(key: tuple[str, int], target: tuple[int, ...], any_factor: bool, code: ErrorCode) -> None:
    async def story(league: League) -> None:
        await league.create("t", [[1, 2]])
        (outcome,) = (await league.controller.reassignments.alter({key: target}, any_factor)).values()
        assert outcome is not None
        assert outcome.code is code

    play(3, story)


def test_a_move_goes_on_under_the_next_controller_and_when_its_broker_is_back() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2]])
        await league.kill(3)
        await league.begin(2)
        await league.restart(3)
        await league.controller.reassignments.alter({T0: (3,)}, True)
        await league.settle()
        await league.kill(1)  # the controller
        assert league.controller.node_id == 2
        await league.check()
        await league.bounce(3)
        assert league.brokers[3].roles[T0].leader == 2
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE
        assert (await league.topic("t")).partitions[0] == Replicas(all=(3,))

    play(3, story)


def test_a_move_that_an_unclean_election_has_decided_ends_when_the_old_replica_is_back() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2]], **{"unclean.leader.election.enable": "true"})
        await league.controller.reassignments.alter({T0: (3,)}, True)
        await league.settle()
        await league.kill(2)
        state = await league.state(T0)
        assert (state.leader, state.isr) == (3, (3,))
        await league.restart(2)
        assert (await league.topic("t")).partitions[0] == Replicas(all=(3,))
        assert league.brokers[2].logs == set()

    play(3, story)


@pytest.mark.parametrize("goal", [None, (1,)])
def test_a_move_is_not_cancelled_if_only_the_new_replica_is_in_sync(goal: tuple[int, ...] | None) -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2]], **{"unclean.leader.election.enable": "true"})
        moves = league.controller.reassignments
        await moves.alter({T0: (3,)}, True)
        await league.settle()
        await league.kill(2)
        (outcome,) = (await moves.alter({T0: goal}, True)).values()
        assert outcome is not None
        assert outcome.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        await league.settle()
        assert T0 in league.brokers[3].logs
        await league.check()

    play(3, story)


def test_a_disk_that_failed_costs_its_replicas_only() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3], [2, 3]])
        league.brokers[2].failed_disk.add(T0)
        league.brokers[2].roles.pop(T0)
        await league.outside.create(paths.NEW_LOG_DIR_EVENT, b'{"version":1,"broker":2,"event":1}', sequential=True)
        await league.settle()
        assert (await league.state(T0)).leader == 3
        assert (await league.state(("t", 1))).leader == 2
        assert await league.outside.children(paths.LOG_DIR_EVENTS) == []
        league.brokers[2].failed_disk.clear()
        await league.bounce(2)

    play(3, story)


def test_a_replica_on_a_full_disk_moves_away_and_back_and_gets_its_role_when_there_is_room() -> None:
    async def story(league: League) -> None:
        async def disk_changed() -> None:
            event = b'{"version":1,"broker":3,"event":1}'
            await league.outside.create(paths.NEW_LOG_DIR_EVENT, event, sequential=True)
            await league.settle()

        moves = league.controller.reassignments
        await league.create("t", [[2, 3]])
        league.brokers[3].failed_disk.add(T0)
        league.brokers[3].roles.pop(T0)
        await disk_changed()
        await moves.alter({T0: (2, 1)}, True)
        await league.settle()
        assert await league.propose(T0, [2, 1]) is ErrorCode.NONE
        assert (await league.topic("t")).partitions[0] == Replicas(all=(2, 1))
        await moves.alter({T0: (2, 3)}, True)
        await league.settle()
        assert T0 not in league.brokers[3].roles, "its disk is still full"
        league.brokers[3].failed_disk.clear()
        await disk_changed()
        assert league.brokers[3].roles[T0].leader == 2

    play(3, story)


def test_producer_ids_come_in_blocks_of_their_own() -> None:
    async def story(league: League) -> None:
        blocks = league.controller.producer_ids
        first = await blocks.allocate(2, league.brokers[2].epoch)
        second = await blocks.allocate(3, league.brokers[3].epoch)
        assert [(block.first, block.last) for block in (first, second)] == [(0, 999), (1000, 1999)]
        assert decode_producer_ids((await league.outside.get(paths.PRODUCER_IDS)).data) == second
        for broker, epoch, code in (
            (2, league.brokers[2].epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
            (9, 0, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ):
            with pytest.raises(KafkaError) as refused:
                await blocks.allocate(broker, epoch)
            assert refused.value.code is code

    play(3, story)


def test_the_next_controller_goes_on_from_the_tree() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[1, 2], [2, 1]])
        await league.create("doomed", [[3]])
        standby = await league.begin(2)
        with pytest.raises(KafkaError) as refused:
            standby.active()
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        await league.kill(3)
        await league.controller.topics.delete(["doomed"])
        await league.kill(1)
        assert standby.is_active
        assert (await league.state(T0)).leader == 2
        assert standby.active().sender.controller_epoch == 2
        await league.check()
        await league.restart(3)
        assert await league.outside.children(paths.TOPICS) == ["t"]
        await league.restart(1)

    play(3, story)


def test_a_creation_that_was_cut_short_is_finished() -> None:
    async def run() -> None:
        league = League(2)
        await league.open()
        node = TopicNode(topic_id=None, partitions={0: Replicas(all=(1, 2)), 1: Replicas(all=(2, 1))})
        await league.outside.create(paths.topic("t"), encode_topic(node))
        await league.outside.create(paths.partitions("t"))
        await league.outside.create(paths.partition("t", 0))
        await league.begin(1)
        assert [(await league.state(("t", n))).leader for n in range(2)] == [1, 2]
        assert (await league.topic("t")).topic_id is not None, "topics of old tools get an id"
        await league.check()
        await league.close()

    asyncio.run(run())


def test_a_move_that_was_cut_short_at_its_end_is_finished() -> None:
    """The earlier controller had written that the target is in sync, and nothing more."""

    async def run() -> None:
        league = League(3)
        await league.open()
        moving = Replicas(all=(3, 2), adding=(3,), removing=(2,))
        state = PartitionState(leader=2, leader_epoch=4, isr=(2, 3), controller_epoch=0)
        await ensure(league.outside, [paths.partition_state("t", 0)])
        await league.outside.set(paths.topic("t"), encode_topic(TopicNode(topic_id=b"t" * 16, partitions={0: moving})))
        await league.outside.set(paths.partition_state("t", 0), encode_partition_state(state))
        await league.begin(1)
        assert (await league.topic("t")).partitions[0] == Replicas(all=(3,))
        assert (await league.state(T0)).leader == 3
        await league.check()
        await league.close()

    asyncio.run(run())


def test_garbage_in_a_node_is_named_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def story(league: League) -> None:
        await league.create("t", [[1, 2], [2, 1]])
        await league.outside.set(paths.partition_state("t", 1), b"{garbage")
        await league.outside.create(paths.topic("garbled"), b"[]")
        await league.outside.create(paths.broker(7), b'{"version":5}')
        await league.outside.create(paths.delete_topic("never"))
        await league.begin(2)
        await league.kill(1)
        assert (await league.state(T0)).leader == 2
        assert await league.outside.children(paths.DELETE_TOPICS) == []
        for path in ("/brokers/topics/t/partitions/1/state", "/brokers/topics/garbled", "/brokers/ids/7"):
            assert path in caplog.text
        assert await league.create("u", [[2]]) is ErrorCode.NONE
        await league.outside.delete(paths.broker(7))
        await league.outside.delete(paths.topic("garbled"))
        await league.restart(1)
        await league.controller.topics.delete(["t"])

    play(2, story)


def test_a_topic_too_large_for_a_node_is_refused_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(league: League) -> None:
        wish = NewTopic(name="t", partitions=200, replication=3)
        (outcome,) = await league.controller.topics.create([wish])
        assert outcome.code is ErrorCode.INVALID_PARTITIONS
        assert "takes" in (outcome.message or "")
        with pytest.raises(NoNodeError):
            await league.outside.get(paths.config("topics", "t"))
        assert await league.create("u", [[1]]) is ErrorCode.NONE
        with pytest.raises(KafkaError) as refused:
            await league.controller.topics.create_partitions("u", 200, None)
        assert refused.value.code is ErrorCode.INVALID_PARTITIONS
        assert len((await league.topic("u")).partitions) == 1

    monkeypatch.setattr("ixion.broker.controller.cluster.topics.MAX_NODE", 1_000)
    play(3, story)


def test_thousands_of_partitions_are_written_in_transactions_of_bounded_size() -> None:
    async def story(league: League) -> None:
        session = league.term.session
        sizes = []
        multi = session.multi

        async def counted(operations):  # type: ignore[no-untyped-def]
            sizes.append(sum(len(each.path) + len(getattr(each, "data", b"")) for each in operations))
            return await multi(operations)

        session.multi = counted  # type: ignore[method-assign]
        (outcome,) = await league.controller.topics.create([NewTopic(name="t", partitions=3_000, replication=2)])
        assert outcome.code is ErrorCode.NONE
        assert max(sizes) < fenced_tree.CHUNK_BYTES + 10_000
        assert len(sizes) < 50

    play(2, story)


def test_stop_replica_of_a_deleted_topic_counts_for_any_epoch() -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2]])
        await league.controller.topics.delete(["t"])
        stops = [each for each in league.brokers[2].heard if isinstance(each, StopReplicaRequest)]
        (state,) = stops[-1].topic_states[0].partition_states
        assert (state.leader_epoch, state.delete_partition) == (-2, True)

    play(2, story)


def test_the_log_says_why_a_leader_moved(caplog: pytest.LogCaptureFixture) -> None:
    async def story(league: League) -> None:
        await league.create("t", [[2, 3, 4]])
        with caplog.at_level("INFO"):
            await league.kill(2)
            await league.restart(2)
            assert await league.propose(T0, [3, 4, 2]) is ErrorCode.NONE
            await league.controller.leaders.elect([T0], unclean=False)
            await league.controller.leaders.shut_down(2, -1)
            await league.settle()

    play(4, story)
    moved = [record.getMessage() for record in caplog.records if ": leader " in record.getMessage()]
    assert moved == [
        "t-0: leader 3 after 2, leader epoch 1, in sync [3, 4]: its leader was lost",
        "t-0: leader 2 after 3, leader epoch 2, in sync [3, 4, 2]: an election of the preferred replica was asked for",
        "t-0: leader 3 after 2, leader epoch 3, in sync [3, 4]: broker 2 shuts down",
    ]
