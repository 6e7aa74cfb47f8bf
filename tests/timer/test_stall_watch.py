"""What counts as a stall, by which clock, and what it is blamed on."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ixion.broker.startup.process import loop_factory, stall_watch_of, watched
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.stall_watch import LIMIT_NS, StallWatch
from ixion.timer.task import TimerTask

MS = 1_000_000


class Clocks:
    """A wall clock and a processor clock that move as the test says."""

    def __init__(self) -> None:
        self.wall_ns = 1_000 * MS
        self.processor_ns = 0

    def work(self, ms: int) -> None:
        self.wall_ns += ms * MS
        self.processor_ns += ms * MS

    def be_preempted(self, ms: int) -> None:
        self.wall_ns += ms * MS

    def watch(self) -> StallWatch:
        return StallWatch(lambda: self.wall_ns, lambda: self.processor_ns)


def test_a_turn_within_the_limit_is_none() -> None:
    clocks = Clocks()
    watch = clocks.watch()
    watch.run(clocks.work, LIMIT_NS // MS)
    assert (watch.stalls, watch.busy_stalls, watch.longest_ns) == (0, 0, 0)


def test_work_is_a_stall_by_both_clocks(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    watch = clocks.watch()
    with caplog.at_level(logging.INFO):
        watch.run(clocks.work, 80)
    assert (watch.stalls, watch.busy_stalls) == (1, 1)
    assert (watch.longest_ns, watch.longest_busy_ns) == (80 * MS, 80 * MS)
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert "held up for 80 ms (80 ms of processor time) by callback Clocks.work" in line.getMessage()


def test_waiting_for_the_processor_is_no_fault_of_the_code(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    watch = clocks.watch()
    with caplog.at_level(logging.INFO):
        watch.run(clocks.be_preempted, 300)
    assert (watch.stalls, watch.busy_stalls, watch.longest_busy_ns) == (1, 0, 0)
    assert caplog.records[0].levelno == logging.INFO


def test_processor_time_before_the_turn_does_not_count() -> None:
    clocks = Clocks()
    watch = clocks.watch()
    watch.run(clocks.work, 4)  # the processor clock was asked when this turn began

    def mixed() -> None:
        clocks.work(48)
        clocks.be_preempted(30)

    watch.run(mixed)
    assert (watch.stalls, watch.busy_stalls) == (1, 0)
    assert watch.longest_busy_ns == 48 * MS


def test_one_line_a_second_and_the_number_of_others(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    watch = clocks.watch()
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            watch.run(clocks.work, 100)
        assert watch.stalls == 20
        watch.report_rest()
        watch.report_rest()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert said[1].endswith("; before that 9 times, for 100 ms of processor time at most, by callback Clocks.work")
    assert (
        said[2] == "the event loop was held up 9 times, for 100 ms of processor time at most, by callback Clocks.work"
    )


def test_the_request_or_the_timer_task_is_blamed(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    watch = clocks.watch()

    class Slow(TimerTask):
        def run(self) -> None:
            clocks.work(2_000)

    def handle() -> None:
        watch.api_key = 68
        clocks.work(2_000)

    def run_task() -> None:
        watch.task = task = Slow(0)
        task.run()

    with caplog.at_level(logging.INFO):
        watch.run(handle)
        watch.run(run_task)
        watch.run(clocks.work, 2_000)
    said = [record.getMessage() for record in caplog.records]
    assert "by a request of API key 68" in said[0]
    assert "by timer task " in said[1]
    assert "Slow" in said[1]
    assert "by callback Clocks.work" in said[2]


def test_a_failing_callback_is_still_a_turn() -> None:
    clocks = Clocks()
    watch = clocks.watch()

    def fail() -> None:
        clocks.work(60)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        watch.run(fail)
    assert watch.stalls == 1


def test_starting_is_not_counted() -> None:
    clocks = Clocks()
    watch = clocks.watch()
    watch.enabled = False
    watch.run(clocks.work, 500)
    assert watch.stalls == 0
    watch.start_over()
    watch.run(clocks.work, 500)
    assert watch.stalls == 1


@pytest.mark.parametrize("make", [loop_factory(), watched(asyncio.SelectorEventLoop)], ids=["uvloop", "asyncio"])
def test_everything_that_runs_on_the_loop_is_a_turn(
    make: object, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(make)
    clocks = Clocks()
    said: list[str] = []

    async def slow_step() -> None:
        clocks.work(2_000)
        await asyncio.sleep(0)

    def slow_call(kind: str) -> None:
        clocks.work(2_000)
        said.append(kind)

    async def live() -> None:
        loop = asyncio.get_running_loop()
        watch = clocks.watch()
        loop.stalls = watch  # type: ignore[attr-defined]
        assert stall_watch_of(loop) is watch
        timer = LoopTimer(loop=loop, stalls=watch)
        await asyncio.create_task(slow_step())
        loop.call_soon(slow_call, "soon")
        loop.call_soon_threadsafe(slow_call, "threadsafe")
        loop.call_later(0, slow_call, "later")
        timer.call_later(0, slow_call, "timer")
        while len(said) < 4:
            await asyncio.sleep(0)
        timer.shutdown()

    with caplog.at_level(logging.INFO), asyncio.Runner(loop_factory=make) as runner:
        runner.run(live())
    blamed = [record.getMessage().partition(" by ")[2] for record in caplog.records if "held up" in record.getMessage()]
    assert sum("slow_step" in name for name in blamed) == 1
    assert sum("slow_call" in name for name in blamed) == 4
    assert sum("timer task" in name for name in blamed) == 1
