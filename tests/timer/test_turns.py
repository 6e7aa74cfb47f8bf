"""Work in slices: the loop has its turns, results and errors come out, short work is done at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import pytest

from ixion.timer import turns
from ixion.timer.turns import (
    MERGED_AT_ONCE,
    SORTED_AT_ONCE,
    Steps,
    Turn,
    finish,
    in_turns,
    run_turn,
    sort_steps,
    start_in_turns,
)


class Ticking:
    """A clock that moves on by a millisecond whenever it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 0
        monkeypatch.setattr(turns, "perf_counter_ns", self)

    def __call__(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns


def count_to(limit: int, seen: list[int]) -> Steps[int]:
    for number in range(limit):
        seen.append(number)
        yield
    return limit


def test_a_turn_ends_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    seen: list[int] = []
    steps = count_to(12, seen)
    assert run_turn(steps) is None
    assert seen == [0, 1, 2, 3, 4]
    assert run_turn(steps) is None
    assert run_turn(steps) == (12,)
    assert len(seen) == 12


def test_the_loop_has_its_turn_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    seen: list[int] = []
    between: list[int] = []

    async def run() -> int:
        loop = asyncio.get_running_loop()

        def look() -> None:
            between.append(len(seen))
            if len(seen) < 20:
                loop.call_soon(look)

        loop.call_soon(look)
        return await in_turns(count_to(20, seen))

    assert asyncio.run(run()) == 20
    assert between[:3] == [5, 10, 15]


def test_short_work_does_not_wait() -> None:
    steps = in_turns(count_to(3, []))
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert end.value.value == 3


def test_without_a_task_results_and_errors_reach_the_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    soon: deque[Callable[[], object]] = deque()
    told: list[tuple[int | None, Exception | None]] = []

    def call_soon(fn: Callable[..., object], *args: object) -> None:
        soon.append(lambda: fn(*args))

    def fail(limit: int) -> Steps[int]:
        yield from count_to(limit, [])
        raise ValueError("no")

    def done(result: int | None, error: Exception | None) -> None:
        told.append((result, error))

    start_in_turns(call_soon, count_to(7, []), done)
    assert told == []
    while soon:
        soon.popleft()()
    assert told == [(7, None)]
    start_in_turns(call_soon, fail(6), done)
    while soon:
        soon.popleft()()
    assert told[1][0] is None
    assert isinstance(told[1][1], ValueError)


def test_a_turn_for_plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    turn = Turn(3_000_000)
    assert [turn.is_over() for _ in range(4)] == [False, False, True, True]


@pytest.mark.parametrize("count", [0, 1, SORTED_AT_ONCE, SORTED_AT_ONCE + 1, 3 * SORTED_AT_ONCE + 7])
def test_sorting_in_steps(count: int) -> None:
    items = [number * 7919 % 10_007 for number in range(count)]
    steps = sort_steps(iter(items))
    taken = sum(1 for _ in iter(lambda: run_one(steps), None))
    assert finish(sort_steps(items)) == sorted(items)
    pieces = count // SORTED_AT_ONCE
    assert taken == pieces + (count // MERGED_AT_ONCE if pieces else 0)


def run_one(steps: Steps[list[int]]) -> bool | None:
    try:
        next(steps)
    except StopIteration:
        return None
    return True
