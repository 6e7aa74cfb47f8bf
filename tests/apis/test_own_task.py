from __future__ import annotations

import asyncio
from threading import Thread

import pytest

from ixion.broker.broker import Broker as RealBroker
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.testing.broker import Broker
from tests.apis.asking import Asking
from tests.apis.filling import fill


def request(name: str) -> CreateTopicsRequest:
    wish = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
    return CreateTopicsRequest(topics=(wish,))


def test_who_waits_for_the_controller_keeps_nobody_waiting() -> None:
    with Broker({"num.io.threads": 2}) as broker:
        broker.create_topic("t")
        gate = asyncio.Event()
        entered = asyncio.Event()

        async def hold(real: RealBroker) -> None:
            async def holding() -> None:
                async with real.parts.sole_controller.queue.turn:
                    entered.set()
                    await gate.wait()

            keep.append(asyncio.get_running_loop().create_task(holding()))
            await entered.wait()

        keep: list[asyncio.Task[None]] = []
        broker.call(hold)
        answers: list[int] = []

        def create(number: int) -> None:
            with Asking(broker.bootstrap) as asking:
                answer = asking.ask(request(f"n{number}"), CreateTopicsResponse)
                answers.append(answer.topics[0].error_code)

        crowd = [Thread(target=create, args=(number,)) for number in range(5)]
        for each in crowd:
            each.start()

        async def as_many_wait_as_there_are_places(real: RealBroker) -> None:
            while len(real.parts.sole_controller.queue.turn._waiters or ()) < 2:
                await asyncio.sleep(0.001)

        broker.call(as_many_wait_as_there_are_places)
        fill(broker.bootstrap, "t", count=20)
        assert answers == []

        async def let_go(_: RealBroker) -> None:
            gate.set()

        broker.call(let_go)
        for each in crowd:
            each.join(20)
        assert answers == [ErrorCode.NONE] * 5


def test_a_fault_ends_the_connection_and_nothing_else(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    async def break_it(real: RealBroker) -> None:
        async def fail(*_: object) -> None:
            raise RuntimeError("a fault of ours")

        real.parts.controller.topics.create = fail  # type: ignore[method-assign,assignment]

    broker.call(break_it)
    with Asking(broker.bootstrap) as asking, pytest.raises(ConnectionError):
        asking.ask(request("n"), CreateTopicsResponse)
    assert "a fault of ours" in caplog.text
    with Asking(broker.bootstrap) as asking, pytest.raises(ConnectionError):
        asking.ask(request("n"), CreateTopicsResponse)
