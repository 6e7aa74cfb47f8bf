"""Logs that a move leaves behind: their brokers are asked to delete them until they have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ixion.broker.controller.cluster import leftovers
from ixion.broker.metadata.topic_node import Replicas
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaPartitionError, StopReplicaRequest
from tests.controller.cluster.league import League, ModelBroker, until

T0 = ("t", 0)


def play(story: Callable[[League], Awaitable[None]]) -> None:
    async def run() -> None:
        league = League(4)
        await league.open()
        await league.begin(1)
        await league.create("t", [[2, 3]])
        await story(league)
        await league.settle()
        await league.check()
        await league.close()

    asyncio.run(asyncio.wait_for(run(), 60))


async def move(league: League, *target: int) -> None:
    """Begin it; its new replicas catch up."""
    assert (await league.controller.reassignments.alter({T0: target}, True))[T0] is None
    for _ in range(20):
        await asyncio.sleep(0)
    state = await league.state(T0)
    assert await proposed(league, dict.fromkeys((*state.isr, *target))) is ErrorCode.NONE


async def proposed(league: League, isr: dict[int, None]) -> ErrorCode:
    """As `League.propose`, which waits for every broker."""
    asking = asyncio.ensure_future(league.propose(T0, list(isr)))
    for _ in range(200):
        await asyncio.sleep(0)
    if asking.done():
        return asking.result()
    asking.cancel()
    return ErrorCode.NONE


async def replicas(league: League) -> Replicas:
    return (await league.topic("t")).partitions[0]


def test_a_broker_that_was_away_deletes_its_log_when_it_is_back() -> None:
    async def story(league: League) -> None:
        await league.kill(3)
        await move(league, 2, 4)
        await league.settle()
        assert await replicas(league) == Replicas(all=(2, 4), leftover=(3,)), "the move does not wait for it"
        assert T0 in league.brokers[3].logs
        await league.restart(3)
        assert T0 not in league.brokers[3].logs
        assert await replicas(league) == Replicas(all=(2, 4))

    play(story)


def test_a_broker_that_is_dead_and_still_registered_deletes_its_log_when_it_is_back() -> None:
    async def story(league: League) -> None:
        league.brokers[3].let_in.clear()
        await move(league, 2, 4)
        assert await replicas(league) == Replicas(all=(2, 4), leftover=(3,)), "it does not answer"
        dead = league.brokers[3].session
        league.brokers[3].begin()
        league.brokers[3].let_in.set()
        await dead.close()
        await league.restart(3)
        assert T0 not in league.brokers[3].logs
        assert await replicas(league) == Replicas(all=(2, 4))

    play(story)


def test_the_next_controller_asks_for_what_the_last_one_did_not_get() -> None:
    async def story(league: League) -> None:
        league.brokers[3].let_in.clear()
        await move(league, 2, 4)
        gone = league.controllers.pop(1)
        await league.brokers[1].session.close()
        league.brokers[1].epoch = -1
        await gone.stop()
        league.brokers[3].under_way = 0
        league.brokers[3].let_in.set()
        assert (await replicas(league)).leftover == (3,)
        await league.begin(4)
        assert T0 not in league.brokers[3].logs
        assert await replicas(league) == Replicas(all=(2, 4))

    play(story)


def test_a_replica_that_comes_back_keeps_its_log() -> None:
    async def story(league: League) -> None:
        await league.kill(3)
        await move(league, 2, 4)
        await league.settle()
        league.brokers[3].begin()
        league.brokers[3].let_in.clear()
        await league.brokers[3].register()
        await until(lambda: 3 in league.term.cluster.brokers)  # it has not carried out any request yet
        assert (await league.controller.reassignments.alter({T0: (2, 3)}, True))[T0] is None
        assert (await replicas(league)).leftover == ()
        league.brokers[3].let_in.set()
        await league.settle()
        assert T0 in league.brokers[3].logs
        assert T0 in league.brokers[3].roles

    play(story)


def test_the_new_replica_of_a_move_that_is_cancelled_deletes_its_log() -> None:
    async def story(league: League) -> None:
        moves = league.controller.reassignments
        assert (await moves.alter({T0: (2, 4)}, True))[T0] is None
        await league.settle()
        assert T0 in league.brokers[4].logs
        await league.kill(4)
        assert (await moves.alter({T0: None}, True))[T0] is None
        await league.settle()
        assert await replicas(league) == Replicas(all=(2, 3), leftover=(4,))
        await league.restart(4)
        assert T0 not in league.brokers[4].logs
        assert await replicas(league) == Replicas(all=(2, 3))

    play(story)


def test_a_broker_that_could_not_delete_its_log_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(league: League) -> None:
        def cannot(_broker: ModelBroker, request: StopReplicaRequest) -> tuple[StopReplicaPartitionError, ...]:
            code = ErrorCode.KAFKA_STORAGE_ERROR
            return (StopReplicaPartitionError(topic_name="t", partition_index=0, error_code=code),)

        with monkeypatch.context() as patched:
            patched.setattr(ModelBroker, "_stop", cannot)
            await move(league, 2, 4)
            await league.settle()
        assert (await replicas(league)).leftover == (3,)
        await league.kill(3)
        await league.restart(3)
        assert T0 not in league.brokers[3].logs
        assert await replicas(league) == Replicas(all=(2, 4))

    play(story)


def test_the_answer_to_an_earlier_request_does_not_count() -> None:
    """The replica has come back and gone again since."""

    async def story(league: League) -> None:
        await league.kill(3)
        await move(league, 2, 4)
        await league.settle()
        term = league.term
        assert leftovers.confirmed(term, 3, {T0: 1 << 30}) == [], "nobody has asked it yet"
        term.asked["t", 0, 3] = 5
        assert leftovers.confirmed(term, 3, {T0: 4}) == []
        assert leftovers.confirmed(term, 3, {T0: 5}) == [T0]
        assert leftovers.confirmed(term, 2, {T0: 5}) == []
        await league.restart(3)

    play(story)
