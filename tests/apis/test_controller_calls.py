from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ixion.broker.apis.controller_calls import in_time
from ixion.broker.metadata.errors import NoNodeError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.testing.broker import Broker
from ixion.timer import LoopTimer, ManualClock
from tests.apis.asking import Asking
from tests.apis.settings import SET, TOPIC, change

T = TypeVar("T")


def on_a_loop(run: Callable[[LoopTimer, ManualClock], Awaitable[T]]) -> T:
    async def main() -> T:
        clock = ManualClock()
        timer = LoopTimer(clock=clock)
        try:
            return await run(timer, clock)
        finally:
            timer.shutdown()

    return asyncio.run(main())


def test_what_is_done_in_time_is_answered() -> None:
    async def run(timer: LoopTimer, clock: ManualClock) -> int:
        async def work() -> int:
            await asyncio.sleep(0)
            return 7

        found = [await in_time(timer, patience, work()) for patience in (1000, 0, -1)]
        assert timer.size == 0  # the alarm is off
        return sum(found)

    assert on_a_loop(run) == 21


def test_what_takes_longer_goes_on() -> None:
    async def run(timer: LoopTimer, clock: ManualClock) -> list[str]:
        seen: list[str] = []
        gate = asyncio.Event()
        done = asyncio.Event()

        async def work() -> None:
            await gate.wait()
            seen.append("done")
            done.set()

        waiting = asyncio.get_running_loop().create_task(in_time(timer, 1000, work()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        clock.advance(1000)
        with pytest.raises(KafkaError) as late:
            await waiting
        assert late.value.code == ErrorCode.REQUEST_TIMED_OUT
        seen.append("told")
        gate.set()
        await done.wait()
        return seen

    assert on_a_loop(run) == ["told", "done"]


def test_a_refusal_of_the_metadata_becomes_a_code(broker: Broker, asking: Asking) -> None:
    broker.create_topic("t")

    async def break_it(real: object) -> None:
        async def refuse(_operations: object) -> None:
            raise NoNodeError("/gone")

        real.parts.session.multi = refuse  # type: ignore[attr-defined]

    broker.call(break_it)
    wish = CreatableTopic(name="n", num_partitions=1, replication_factor=1, assignments=(), configs=())
    for patience in (0, 5000):
        request = CreateTopicsRequest(topics=(wish,), timeout_ms=patience)
        (refused,) = asking.ask(request, CreateTopicsResponse).topics
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "/gone" in (refused.error_message or "")
    assert change(asking, TOPIC, "t", [("retention.ms", SET, "1")])[0] == ErrorCode.UNKNOWN_SERVER_ERROR
