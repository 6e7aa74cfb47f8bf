from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ixion.timer.lane import Lane
from ixion.timer.payer import PAYER, timed
from ixion.timer.turns import Steps


@pytest.fixture(autouse=True)
def nobody_pays() -> Iterator[None]:
    yield
    PAYER.current = None


def steps(count: int, seen: list[object]) -> Steps[int]:
    for _ in range(count):
        seen.append(PAYER.current)
        yield
    return count


def test_later_turns_of_a_job_are_charged_and_the_first_is_not() -> None:
    soon: list[object] = []
    spent: list[int] = []
    seen: list[object] = []
    lane = Lane(lambda call, *_: soon.append(call), turn_ns=0)
    spend = spent.append
    PAYER.current = spend
    lane.run(steps(3, seen), lambda *_: None)
    assert spent == [], "the caller measures this turn"
    PAYER.current = None
    lane.run(steps(2, []), lambda *_: None)  # nobody pays for this one
    while soon:
        soon.pop(0)()  # type: ignore[operator]
        assert PAYER.current is None
    assert len(spent) == 3  # the second and third step, and the end
    assert all(each >= 0 for each in spent)
    assert seen == [spend] * 3


def test_a_job_that_a_job_begins_has_the_same_payer() -> None:
    soon: list[object] = []
    spent: list[int] = []
    lane, other = (Lane(lambda call, *_: soon.append(call), turn_ns=0) for _ in range(2))
    spend = spent.append

    def begin(*_: object) -> None:
        other.run(steps(1, seen), lambda *_: None)

    seen: list[object] = []
    PAYER.current = spend
    lane.run(steps(1, []), begin)
    PAYER.current = None
    while soon:
        soon.pop(0)()  # type: ignore[operator]
    assert seen == [spend]


def test_every_step_of_a_coroutine_is_charged() -> None:
    spent: list[int] = []
    seen: list[object] = []
    spend = spent.append

    async def work() -> None:
        for _ in range(3):
            seen.append(PAYER.current)
            await asyncio.sleep(0)

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("on purpose")

    async def run() -> None:
        await timed(work(), spend)
        assert PAYER.current is None
        with pytest.raises(ValueError, match="on purpose"):
            await timed(fails(), spend)

    asyncio.run(run())
    assert seen == [spend] * 3
    assert len(spent) == 4 + 2


def test_a_cancelled_coroutine_is_cancelled() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def run() -> None:
        task = asyncio.get_running_loop().create_task(timed(work(), lambda _: None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert ended == ["cancelled"]
