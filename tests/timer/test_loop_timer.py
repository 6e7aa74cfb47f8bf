"""The timer that an event loop owns: no thread, no lock, awake exactly when a bucket is due."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ixion.timer import LoopTimer, ManualClock, TimerClosedError, TimerTask
from ixion.timer.turns import TURN_NS


def on_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


async def turn() -> None:
    """Let the loop run what is ready."""
    for _ in range(3):
        await asyncio.sleep(0)


@on_loop
async def test_tasks_run_on_the_loop_at_their_deadline() -> None:
    clock = ManualClock()
    timer = LoopTimer(clock=clock)
    seen: list[tuple[int, int]] = []
    for delay_ms in (450, 30, 5, 5):
        timer.call_later(delay_ms, lambda d=delay_ms: seen.append((d, clock.now_ms)))
    for _ in range(500):
        clock.advance(1)
        await turn()
    assert seen == [(5, 5), (5, 5), (30, 30), (450, 450)]
    timer.shutdown()


@on_loop
async def test_it_needs_no_thread_and_sleeps_until_the_next_bucket() -> None:
    before = threading.active_count()
    timer = LoopTimer()
    done = asyncio.get_running_loop().create_future()
    started = time.monotonic_ns()
    timer.call_later(30_000, print)
    timer.call_later(15, done.set_result, None)
    assert threading.active_count() == before
    await asyncio.wait_for(done, 20)
    assert time.monotonic_ns() - started >= 15_000_000
    assert timer.size == 1
    timer.shutdown()


@on_loop
async def test_one_handle_stands_for_all_and_is_armed_anew_only_for_an_earlier_bucket() -> None:
    timer = LoopTimer()
    calls: list[float] = []
    loop = asyncio.get_running_loop()
    real = loop.call_later

    def spy(delay: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        calls.append(delay)
        return real(delay, *args, **kwargs)

    loop.call_later = spy  # type: ignore[method-assign, assignment]
    for _ in range(100):
        timer.call_later(5_000, print)
    assert len(calls) == 1
    timer.call_later(6_000, print)
    assert len(calls) == 1
    timer.call_later(1_000, print)
    assert len(calls) == 2
    timer.shutdown()


@on_loop
async def test_cancelled_and_due_tasks() -> None:
    clock = ManualClock()
    timer = LoopTimer(clock=clock)
    ran: list[str] = []
    waiting = timer.call_later(10, ran.append, "cancelled")
    assert waiting.cancel()
    assert not timer.add(waiting)
    timer.call_later(0, ran.append, "due")
    assert ran == []  # due tasks run on the loop, not inside add
    await turn()
    clock.advance(100)
    await turn()
    assert ran == ["due"]
    assert timer.size == 0
    timer.shutdown()


@on_loop
async def test_a_crowd_falling_due_at_once_leaves_the_loop_its_turns() -> None:
    clock = ManualClock()
    timer = LoopTimer(clock=clock)
    order: list[str] = []
    for _ in range(2_000):
        timer.call_later(5, order.append, "task")
    clock.advance(5)
    loop = asyncio.get_running_loop()
    loop.call_soon(lambda: loop.call_soon(order.append, "other"))
    while len(order) < 2_001:
        await asyncio.sleep(0)
    assert order.index("other") < 1_500
    timer.shutdown()


@on_loop
async def test_a_task_that_adds_one_without_delay_leaves_the_loop_its_turn() -> None:
    """Long work is done in pieces that way."""
    timer = LoopTimer(clock=ManualClock())
    loop = asyncio.get_running_loop()
    order: list[str] = []

    def piece(left: int) -> None:
        order.append("piece")
        loop.call_soon(order.append, "other")
        if left:
            timer.call_later(0, piece, left - 1)

    timer.call_later(0, piece, 3)
    while len(order) < 8:
        await asyncio.sleep(0)
    assert order == ["piece", "other"] * 4
    timer.shutdown()


@on_loop
async def test_shutdown_while_tasks_run() -> None:
    timer = LoopTimer(clock=ManualClock())
    ran: list[int] = []
    timer.call_later(0, timer.shutdown)
    timer.call_later(0, ran.append, 1)
    await turn()
    assert ran == []


@on_loop
async def test_a_task_that_raises_harms_no_other() -> None:
    clock = ManualClock()
    timer = LoopTimer(clock=clock)
    ran: list[int] = []
    timer.call_later(1, lambda: 1 // 0)
    timer.call_later(1, ran.append, 1)
    clock.advance(1)
    await turn()
    assert ran == [1]
    assert timer.snapshot().failed == 1
    timer.shutdown()


@on_loop
async def test_shutdown() -> None:
    timer = LoopTimer("gone")
    ran: list[int] = []
    timer.call_later(1, ran.append, 1)
    timer.shutdown()
    timer.shutdown()
    await asyncio.sleep(0.01)
    assert ran == []
    with pytest.raises(TimerClosedError, match="gone"):
        timer.call_later(1, ran.append, 1)


@on_loop
async def test_a_periodic_task_on_the_loop() -> None:
    clock = ManualClock()
    timer = LoopTimer(clock=clock)

    class Beat(TimerTask):
        count = 0

        def run(self) -> None:
            self.count += 1
            timer.add(self)

    beat = Beat(3)
    timer.add(beat)
    for _ in range(30):
        clock.advance(1)
        await turn()
    assert beat.count == 10
    timer.shutdown()


@on_loop
async def test_slow_tasks_leave_the_loop_its_turn_after_each() -> None:
    clock = ManualClock()
    timer = LoopTimer(clock=clock)
    loop = asyncio.get_running_loop()
    order: list[str] = []

    def slow() -> None:
        order.append("task")
        loop.call_soon(order.append, "other")
        until = time.perf_counter_ns() + 2 * TURN_NS
        while time.perf_counter_ns() < until:
            pass

    for _ in range(3):
        timer.call_later(5, slow)
    clock.advance(5)
    while len(order) < 6:
        await asyncio.sleep(0)
    assert order == ["task", "other"] * 3
    timer.shutdown()
