"""Which replicas have every committed record, and what the controller waits for if none of them surely lives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from ixion.broker.controller.door import LogEnds
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import NO_LOG, TopicPartition
from tests.controller.cluster.league import League, until

T0 = ("t", 0)


def play(story: Callable[[League], Awaitable[None]], *, min_isr: int = 2, unclean: str = "false") -> None:
    async def run() -> None:
        league = League(5, settings={"min.insync.replicas": str(min_isr)})
        await league.open()
        await league.begin(1)
        await league.create("t", [[2, 3, 4]], **{"unclean.leader.election.enable": unclean})
        await story(league)
        await league.settle()
        await league.check()
        await league.close()

    asyncio.run(asyncio.wait_for(run(), 60))


async def goes(league: League, *numbers: int, keeps: bool = True) -> None:
    """They are killed; their next registration says whether their logs are complete."""
    for number in numbers:
        league.brokers[number].kept_since = league.brokers[number].epoch if keeps else None
    await league.kill(*numbers)


def has(league: League, **ends: tuple[int, int]) -> None:
    for name, end in ends.items():
        league.brokers[int(name[1:])].ends[T0] = end


async def leader(league: League) -> tuple[int, tuple[int, ...]]:
    state = await league.state(T0)
    return state.leader, state.isr


@pytest.mark.parametrize("min_isr", [1, 2])
def test_a_member_that_may_have_lost_records_does_not_lead_while_another_is_away(min_isr: int) -> None:
    """Both went while there was no controller, and the tree does not say which of them went first."""

    async def story(league: League) -> None:
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE
        await league.kill(1)
        await league.bounce(2)
        await goes(league, 3)
        has(league, b2=NO_LOG, b3=(0, 9), b4=(0, 5))
        await league.begin(5)
        assert await leader(league) == (-1, (2, 3)), "broker 3 may have what the others lack"
        await league.kill(5)
        await league.begin(4)
        assert await leader(league) == (-1, (2, 3)), "nor does the next controller trust it"
        await league.restart(3)
        assert await leader(league) == (3, (3,))

    play(story, min_isr=min_isr)


def test_a_member_that_has_kept_its_log_leads_at_once() -> None:
    async def story(league: League) -> None:
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE
        await league.kill(1)
        league.brokers[2].kept_since = league.brokers[2].epoch
        await league.bounce(2)
        await goes(league, 3)
        await league.begin(5)
        assert await leader(league) == (2, (2,))
        assert (await league.state(T0)).eligible == (3,)

    play(story)


def test_a_broker_that_does_not_say_whether_it_has_kept_its_log_leads_at_once() -> None:
    """Apache Kafka's brokers do not; if one of them is gone for good, the others serve after a restart."""

    async def story(league: League) -> None:
        league.brokers[2].is_apache = True
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE
        await league.kill(1)
        await league.bounce(2)
        await goes(league, 3)
        await league.begin(5)
        assert await leader(league) == (2, (2,))

    play(story)


def test_where_all_that_were_in_sync_are_back_the_longest_log_leads() -> None:
    async def story(league: League) -> None:
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE
        await league.kill(1)
        await league.bounce(2)
        await goes(league, 3, keeps=False)
        has(league, b2=(0, 8), b3=(0, 7), b4=(0, 5))
        await league.begin(5)
        assert (await leader(league))[0] == -1
        await league.restart(3)
        assert await leader(league) == (2, (2,)), "none has kept its log"

    play(story)


@pytest.mark.parametrize("lost", [(2, 3), (3, 2)])
def test_all_stay_in_sync_that_went_at_the_same_moment(lost: Sequence[int]) -> None:
    async def story(league: League) -> None:
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE
        for number in lost:
            league.brokers[number].kept_since = league.brokers[3].epoch if number == 3 else None
            league.brokers[number].epoch = -1
            await league.brokers[number].session.close()
        await league.settle()
        assert await leader(league) == (-1, (2, 3))
        has(league, b2=NO_LOG, b3=(0, 9), b4=(0, 5))
        await league.restart(2)
        assert (await leader(league))[0] == -1
        await league.restart(3)
        assert await leader(league) == (3, (3,))

    play(story, min_isr=1)


def test_a_replica_that_left_when_nothing_more_could_be_committed_is_waited_for() -> None:
    """The last one in sync loses its log; of the two that stopped before it, only the second has every record."""

    async def story(league: League) -> None:
        await goes(league, 3)
        assert (await league.state(T0)).eligible == (), "two are in sync: records are committed without it"
        await goes(league, 4)
        assert ((await league.state(T0)).isr, (await league.state(T0)).eligible) == ((2,), (4,))
        await goes(league, 2, keeps=False)
        has(league, b2=NO_LOG, b3=(0, 5), b4=(0, 9))
        await league.restart(2, 3)
        assert (await leader(league))[0] == -1, "broker 3 lacks records that were acknowledged"
        await league.restart(4)
        assert await leader(league) == (4, (4,))
        assert (await league.state(T0)).eligible == (), "the others were found to have less"
        assert await league.propose(T0, [4, 2], {2: league.brokers[2].epoch}) is ErrorCode.NONE
        assert (await league.state(T0)).eligible == ()

    play(story)


def test_records_may_be_committed_by_the_last_one_alone() -> None:
    """Then those that left before it have nothing that it may lack."""

    async def story(league: League) -> None:
        await goes(league, 3, 4)
        assert (await league.state(T0)).eligible == ()
        await goes(league, 2, keeps=False)
        await league.restart(2)
        assert await leader(league) == (2, (2,))

    play(story, min_isr=1)


def test_an_eligible_replica_that_does_not_answer_is_waited_for() -> None:
    async def story(league: League) -> None:
        await goes(league, 3)
        assert await league.propose(T0, [2]) is ErrorCode.NONE
        assert (await league.state(T0)).eligible == (4,)
        await goes(league, 2, keeps=False)
        has(league, b2=NO_LOG, b3=(0, 5), b4=(0, 9))
        league.brokers[4].silent = True
        await league.restart(2, 3)
        assert (await leader(league))[0] == -1
        league.brokers[4].silent = False
        await until(lambda: league.term.cluster.leaderships[T0].leader == 4)

    play(story)


def test_an_eligible_replica_that_lost_its_log_is_none_any_more() -> None:
    async def story(league: League) -> None:
        await goes(league, 3)
        await goes(league, 4, keeps=False)
        assert (await league.state(T0)).eligible == (4,)
        await league.restart(4)
        await goes(league, 2)
        await league.kill(4)
        has(league, b2=(0, 9))
        await league.restart(2)
        assert await leader(league) == (2, (2,))
        assert (await league.state(T0)).eligible == (), "its restart was seen before it went again"
        await league.restart(4)
        assert await league.propose(T0, [2, 4], {4: league.brokers[4].epoch}) is ErrorCode.NONE
        assert await league.propose(T0, [2]) is ErrorCode.NONE
        assert (await league.state(T0)).eligible == (4,), "it has fetched everything since"

    play(story)


@pytest.mark.parametrize("back", [(2,), (2, 3)])
def test_a_topic_that_allows_unclean_elections_does_not_wait(back: Sequence[int]) -> None:
    async def story(league: League) -> None:
        await goes(league, 3)
        await goes(league, 4)
        await goes(league, 2, keeps=False)
        has(league, b2=(0, 2), b3=(0, 5), b4=(0, 9))
        await league.restart(*back)
        assert await leader(league) == (back[-1], (back[-1],)), "the longest log of those that live"

    play(story, unclean="true")


def test_an_answer_of_a_later_life_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one in sync is registered, but dead; its next life registers with an empty disk, and answers before the
    controller sees the registration."""

    async def story(league: League) -> None:
        assert await league.propose(T0, [2, 3]) is ErrorCode.NONE
        has(league, b2=NO_LOG, b3=(0, 9), b4=(0, 5))
        last = league.brokers[2]
        real = last.log_ends

        async def after_a_restart(keys: Sequence[TopicPartition]) -> LogEnds:
            monkeypatch.undo()
            await last.session.close()
            last.begin()
            await last.register()
            return await real(keys)

        monkeypatch.setattr(last, "log_ends", after_a_restart)
        await league.kill(1)
        league.brokers[2].kept_since = league.brokers[2].epoch
        await league.bounce(2)
        league.brokers[2].kept_since = None
        await goes(league, 3)
        await league.begin(5)
        await until(lambda: league.term.cluster.brokers[2].epoch == last.epoch)
        await league.settle()
        assert (await leader(league))[0] == -1
        await league.restart(3)
        assert (await leader(league))[0] == 3

    play(story)
