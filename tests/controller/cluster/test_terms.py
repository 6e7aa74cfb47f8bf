"""How a broker becomes the controller, and how it stops to be it: deposed, expired, failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ixion.broker.controller.cluster import controller as module
from ixion.broker.controller.cluster import leaders
from ixion.broker.controller.cluster.fenced_tree import DeposedError
from ixion.broker.controller.cluster.take_over import take_over
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.election import elect
from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata import paths
from ixion.broker.metadata.broker_node import Registration, encode_registration
from ixion.broker.metadata.cluster_node import decode_controller, encode_controller
from ixion.broker.metadata.config_node import encode_config
from ixion.broker.metadata.errors import TooLargeError
from ixion.broker.metadata.node import Create
from ixion.config.listeners import Endpoint
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.controller.cluster.league import League, until


def play(story: Callable[[League], Awaitable[None]], brokers: int = 3) -> None:
    async def run() -> None:
        league = League(brokers)
        await league.open()
        await story(league)
        await league.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_deposed_controller_resigns_at_its_next_write_and_the_new_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(league: League) -> None:
        first = await league.begin(1)
        await league.create("t", [[2, 3]])
        cancel = first._cancel_watch  # it does not notice that it was deposed, as in a pause
        cancel()
        await league.outside.delete(paths.CONTROLLER)
        second = await league.begin(2)
        assert second.is_active
        assert first.is_active, "so it believes"
        stale = first.active()
        with pytest.raises(KafkaError) as refused:
            await first.topics.create([NewTopic(name="u")])
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        await until(lambda: not first.is_active)
        with pytest.raises(DeposedError):
            await stale.tree.write([Create("/x")])
        assert await league.outside.children(paths.TOPICS) == ["t"]
        await league.settle()
        await league.check()

    play(story)


def test_brokers_refuse_the_requests_of_a_deposed_controller() -> None:
    async def story(league: League) -> None:
        first = await league.begin(1)
        await league.create("t", [[2, 3]])
        first._cancel_watch()
        old = first.active()
        await league.outside.delete(paths.CONTROLLER)
        await league.begin(2)
        epochs = {number: broker.controller_epoch for number, broker in league.brokers.items()}
        assert set(epochs.values()) == {2}
        batch = old.batch()
        old.cluster.brokers.pop(3)
        batch.show(old.cluster.brokers, ())
        await old.send(batch)
        await asyncio.sleep(0.01)
        assert league.brokers[2].brokers == {1, 2, 3}
        await first.end()

    play(story)


def test_changes_that_wait_are_refused_when_the_term_ends() -> None:
    async def story(league: League) -> None:
        controller = await league.begin(1)
        term = controller.active()
        async with term.queue.turn:  # a long change
            waiting = [asyncio.ensure_future(controller.topics.create([NewTopic(name=f"t{n}")])) for n in range(3)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            ending = asyncio.ensure_future(controller.end())
            await asyncio.sleep(0)
            assert not ending.done(), "the change that runs comes to its end first"
        await ending
        for each in waiting:
            with pytest.raises(KafkaError) as refused:
                await each
            assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert await league.outside.children(paths.TOPICS) == []

    play(story)


def test_an_expired_session_ends_the_writes_at_once_and_another_session_goes_on() -> None:
    async def story(league: League) -> None:
        controller = await league.begin(1)
        standby = await league.begin(2)
        await league.create("t", [[2, 3]])
        term = controller.active()
        controller._session_expired(term.session)
        with pytest.raises(DeposedError):
            await term.tree.write([Create("/x")])
        await controller.end()
        await term.session.close()  # ZooKeeper has forgotten it
        await until(lambda: standby.is_active)
        league.brokers[1].begin()
        await league.brokers[1].register()
        await controller.begin(league.brokers[1].session)
        await league.settle()
        assert not controller.is_active
        await league.kill(2)
        await until(lambda: controller.is_active)
        await league.settle()
        await league.check()

    play(story)


def test_a_controller_of_a_kraft_migration_is_left_alone() -> None:
    async def story(league: League) -> None:
        data = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":5}'
        await league.outside.create(paths.CONTROLLER, data)
        controller = await league.begin(1)
        assert not controller.is_active
        assert (await league.outside.get(paths.CONTROLLER)).data == data
        await controller.end()

    play(story)


def test_the_node_of_an_earlier_session_of_ours_does_not_make_us_the_controller() -> None:
    """It goes when that session expires; until then this broker's writes would not be its own."""

    async def story(league: League) -> None:
        await league.outside.create(paths.CONTROLLER, encode_controller(1, 0), ephemeral=True)
        controller = await league.begin(1)
        assert not controller.is_active
        await league.outside.delete(paths.CONTROLLER)
        await until(lambda: controller.is_active)
        await league.settle()

    play(story)


def test_a_take_over_that_fails_gives_the_role_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(league: League) -> None:
        failures = 2
        real = take_over

        async def failing(*given: Any) -> None:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise RuntimeError("something unforeseen")
            await real(*given)

        monkeypatch.setattr(module, "take_over", failing)
        monkeypatch.setattr(module, "PAUSE_S", 0.001)
        await league.begin(1)
        await until(lambda: failures < 0)
        await league.settle()
        assert decode_controller((await league.outside.get(paths.CONTROLLER)).data) == 1
        assert league.term.sender.controller_epoch == 3
        assert await league.create("t", [[2, 3]]) is ErrorCode.NONE
        await league.check()

    play(story)


@pytest.mark.parametrize("error", [DeposedError("another one has written"), RuntimeError("something unforeseen")])
def test_nothing_goes_by_the_view_of_a_take_over_that_ended_early(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Found by seed 120623 of the simulator: a broker registered, and no partition of the view had a replica yet."""

    async def story(league: League) -> None:
        ran: list[str] = []
        terms: list[Term] = []

        async def change() -> None:
            ran.append("with half a view")

        async def ended_early(term: Term, unclean: bool) -> None:
            if terms:
                return await take_over(term, unclean)
            terms.append(term)
            term.soon("a change", change)
            await asyncio.sleep(0.001)
            raise error

        monkeypatch.setattr(module, "PAUSE_S", 0.001)
        monkeypatch.setattr(module, "take_over", ended_early)
        await league.begin(1)
        await until(lambda: bool(terms) and not terms[0]._tasks)
        assert ran == []

    play(story)


def test_an_event_that_fails_half_way_is_followed_by_a_new_term(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(league: League) -> None:
        await league.begin(1)
        await league.create("t", [[2, 3]])
        monkeypatch.setattr(module, "PAUSE_S", 0.001)
        write_states = league.term.tree.write_states

        async def failing(states: Any) -> Any:
            await write_states(dict(list(states.items())[:1]))
            raise RuntimeError("something unforeseen")

        monkeypatch.setattr(league.term.tree, "write_states", failing)
        controller = league.controller
        await league.brokers[2].session.close()
        league.brokers[2].epoch = -1
        league.brokers[2].roles.clear()
        await until(lambda: controller.is_active and controller.active().sender.controller_epoch == 2)
        await league.settle()
        assert (await league.state(("t", 0))).leader == 3
        await league.check()

    play(story)


def test_a_request_that_fails_half_way_is_followed_by_a_new_term(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(league: League) -> None:
        controller = await league.begin(1)
        await league.create("t", [[2, 3]])
        monkeypatch.setattr(module, "PAUSE_S", 0.001)
        with monkeypatch.context() as patched:

            async def failing(*_: Any) -> None:
                raise RuntimeError("something unforeseen")

            patched.setattr(leaders, "put_offline", failing)
            with pytest.raises(
                RuntimeError
            ):  # after it has written that broker 3 leads, and before any broker hears it
                await controller.leaders.shut_down(2, league.brokers[2].epoch)
        assert (await league.state(("t", 0))).leader == 3
        await until(lambda: controller.is_active and controller.active().sender.controller_epoch == 2)
        await league.settle()
        await league.check()

    play(story)


def test_a_request_that_is_too_large_does_not_end_the_term() -> None:
    async def story(league: League) -> None:
        controller = await league.begin(1)

        async def refused() -> None:
            raise TooLargeError("/config/topics/t", "2 MB")

        with pytest.raises(TooLargeError):
            await controller.active().run(refused)
        await league.settle()
        assert controller.active().sender.controller_epoch == 1
        assert await league.create("t", [[2, 3]]) is ErrorCode.NONE

    play(story)


def test_brokers_stand_for_election_again_after_garbage_in_the_node_of_the_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(league: League) -> None:
        monkeypatch.setattr(module, "PAUSE_S", 0.001)
        first, second = await league.begin(1), await league.begin(2)
        looks = 0
        real = elect

        async def counted(*given: Any) -> Any:
            nonlocal looks
            looks += 1
            return await real(*given)

        monkeypatch.setattr(module, "elect", counted)
        await league.outside.set(paths.CONTROLLER, b"garbage")
        await until(lambda: looks >= 4)  # each of them has looked, and once more
        await league.outside.delete(paths.CONTROLLER)
        await until(lambda: any(each.is_active and epoch_of(each) == 2 for each in (first, second)))
        await league.settle()
        await league.check()

    play(story)


def test_a_broker_that_starts_while_the_node_of_the_controller_is_garbage_is_elected_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(league: League) -> None:
        monkeypatch.setattr(module, "PAUSE_S", 0.001)
        await league.outside.create(paths.CONTROLLER_EPOCH, b"4")
        await league.outside.create(paths.CONTROLLER, b"garbage")
        controller = await league.begin(1)
        assert not controller.is_active
        await league.outside.delete(paths.CONTROLLER)
        await until(lambda: controller.is_active)
        await league.settle()
        await league.check()

    play(story)


def test_a_term_that_is_being_ended_is_ended_although_the_session_expires_meanwhile() -> None:
    async def story(league: League) -> None:
        controller = await league.begin(1)
        term, done = controller.active(), asyncio.Event()

        async def long() -> None:
            await done.wait()

        running = asyncio.create_task(term.run(long))
        await asyncio.sleep(0)
        await league.outside.delete(paths.CONTROLLER)
        await league.outside.create(paths.CONTROLLER, encode_controller(2, 0))
        await until(lambda: term.queue._stopped)  # deposed: the term ends as soon as the change has
        ending = asyncio.create_task(controller.end())
        for _ in range(20):
            await asyncio.sleep(0)
        done.set()
        await ending
        await running
        assert not controller.is_active
        assert not term.channels._channels, "nothing is sent any more"

    play(story)


def test_a_setting_that_cannot_be_read_costs_no_controller() -> None:
    async def story(league: League) -> None:
        controller = await league.begin(1)
        await league.create("t", [[2, 3]])
        config = encode_config({"unclean.leader.election.enable": "maybe"})
        await league.outside.set(paths.config("topics", "t"), config)
        await league.kill(3)
        await league.kill(2)
        await league.restart(3)
        assert epoch_of(controller) == 1
        assert (await league.state(("t", 0))).leader == -1
        await league.check()

    play(story)


def test_a_broker_that_is_registered_with_an_unknown_protocol_costs_no_controller() -> None:
    async def story(league: League) -> None:
        controller = await league.begin(1)
        await league.create("t", [[2, 1]])
        endpoint = Endpoint("PLAINTEXT", "h", 9, "QUIC")
        node = encode_registration(Registration(endpoints=(endpoint,), timestamp_ms=0))
        await league.outside.create(paths.broker(9), node, ephemeral=True)
        await league.settle()
        assert epoch_of(controller) == 1
        await league.check()

    play(story)


def epoch_of(controller: module.ClusterController) -> int:
    return controller.active().sender.controller_epoch
