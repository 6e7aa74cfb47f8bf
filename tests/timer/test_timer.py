"""The timer's cases: what runs, when, and what bad input and bad tasks do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from ixion.timer import ManualClock, SystemTimer, TimerClosedError, TimerTask


class Recorder(TimerTask):
    def __init__(self, delay_ms: int, out: list[int]) -> None:
        super().__init__(delay_ms)
        self.out = out

    def run(self) -> None:
        self.out.append(self.delay_ms)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timer(clock: ManualClock) -> Iterator[SystemTimer]:
    timer = SystemTimer("test", tick_ms=1, wheel_size=3, clock=clock, executor=lambda task: task.run())
    yield timer
    timer.shutdown()


def threads_named(word: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if word in thread.name]


def test_expired_tasks_run_at_once(timer: SystemTimer) -> None:
    out: list[int] = []
    for delay_ms in range(-5, 0):
        assert not timer.add(Recorder(delay_ms, out))
    assert len(out) == 5
    assert timer.size == 0


def test_every_task_runs_in_the_order_of_its_deadline(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []
    delays = [*range(5), *range(10, 100), *range(10, 100), *range(100, 500)]
    for delay_ms in reversed(delays):
        timer.add(Recorder(delay_ms, out))
    while timer.size:
        clock.advance(1)
        timer.advance_clock(0)
    assert out == sorted(delays)


def test_a_task_runs_at_its_deadline_and_not_before(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []
    timer.add(Recorder(100, out))
    clock.advance(99)
    timer.advance_clock(0)
    assert out == []
    clock.advance(1)
    timer.advance_clock(0)
    assert out == [100]


def test_a_cancelled_task_never_runs(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []
    task = Recorder(10, out)
    timer.add(task)
    assert task.cancel()
    assert (task.waiting, timer.size) == (False, 0)
    assert not timer.add(task)
    clock.advance(50)
    timer.advance_clock(0)
    assert out == []


def test_cancelled_before_it_was_added(timer: SystemTimer) -> None:
    out: list[int] = []
    late, due = Recorder(10, out), Recorder(0, out)
    for task in (late, due):
        assert not task.cancel()
        assert task.cancelled
        assert not timer.add(task)
    assert (timer.size, out) == (0, [])


def test_a_task_may_add_itself_again(timer: SystemTimer, clock: ManualClock) -> None:
    ticks: list[int] = []

    class Periodic(TimerTask):
        def run(self) -> None:
            ticks.append(clock.now_ms)
            timer.add(self)

    timer.add(Periodic(10))
    for _ in range(35):
        clock.advance(1)
        timer.advance_clock(0)
    assert ticks == [10, 20, 30]


def test_a_task_moves_from_one_timer_to_another(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []
    other = SystemTimer("other", clock=clock, executor=lambda task: task.run())
    task = Recorder(10, out)
    timer.add(task)
    other.add(task)
    assert (timer.size, other.size) == (0, 1)
    clock.advance(10)
    assert not timer.advance_clock(0) or not out
    assert other.advance_clock(0)
    assert out == [10]
    other.shutdown()


def test_call_later(timer: SystemTimer, clock: ManualClock) -> None:
    said: list[tuple[str, int]] = []
    timer.call_later(5, lambda word, number: said.append((word, number)), "five", 5)
    kept = timer.call_later(6, said.append, ("six", 6))
    kept.cancel()
    clock.advance(10)
    timer.advance_clock(0)
    assert said == [("five", 5)]


@pytest.mark.parametrize("delay", [1.5, 5.0, "5", None, 2**62 + 1, 2**70, float("nan")])
def test_a_delay_that_is_no_whole_number_or_absurd(delay: object) -> None:
    with pytest.raises(ValueError, match="delay_ms"):
        Recorder(delay, [])  # type: ignore[arg-type]


def test_the_longest_delay_waits(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []
    timer.add(Recorder(2**62, out))
    clock.advance(10**12)
    timer.advance_clock(0)
    assert (timer.size, out) == (1, [])


def test_a_delay_far_below_zero_is_at_once(timer: SystemTimer) -> None:
    out: list[int] = []
    timer.add(Recorder(-(2**80), out))
    assert len(out) == 1


@pytest.mark.parametrize(("tick_ms", "wheel_size"), [(0, 20), (-1, 20), (1, 1), (1, 0)])
def test_a_wheel_that_cannot_be(tick_ms: int, wheel_size: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        SystemTimer("bad", tick_ms=tick_ms, wheel_size=wheel_size)


def test_a_task_that_raises_is_logged_and_counted(
    timer: SystemTimer, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    out: list[int] = []

    class Broken(TimerTask):
        def run(self) -> None:
            raise KeyError("nothing there")

    timer.add(Broken(1))
    timer.add(Recorder(1, out))
    clock.advance(1)
    with caplog.at_level(logging.ERROR):
        timer.advance_clock(0)
    assert out == [1]
    assert timer.snapshot().failed == 1
    assert "Broken" in caplog.text
    assert "nothing there" in caplog.text


def test_the_worker_survives_a_task_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    timer = SystemTimer("worker-test")
    ran = threading.Event()

    class Exits(TimerTask):
        def run(self) -> None:
            raise SystemExit(3)

    with caplog.at_level(logging.ERROR):
        timer.add(Exits(0))
        timer.call_later(0, ran.set)
        assert ran.wait(10)
    assert "Exits" in caplog.text
    timer.shutdown()


def test_an_executor_runs_the_task_itself_or_through_the_timer(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    out: list[int] = []
    inline = SystemTimer("inline", clock=clock, executor=lambda task: task.run())
    inline.add(Recorder(0, out))
    later: list[TimerTask] = []
    pooled = SystemTimer("pooled", clock=clock, executor=later.append)
    pooled.add(Recorder(-1, out))
    pooled.call_later(0, lambda: 1 // 0)
    for task in later:
        pooled.run_task(task)
    assert out == [0, -1]
    assert pooled.snapshot().failed == 1
    inline.shutdown()
    pooled.shutdown()


def test_a_task_without_run_says_so(timer: SystemTimer, caplog: pytest.LogCaptureFixture) -> None:
    class Forgot(TimerTask):
        pass

    timer.add(Forgot(0))
    assert "Forgot needs a run() method" in caplog.text


def test_the_default_worker_runs_tasks_on_a_thread_of_its_own_in_order() -> None:
    timer = SystemTimer("order")
    seen: list[tuple[int, str]] = []
    done = threading.Event()
    for number in range(50):
        timer.call_later(5, lambda n=number: seen.append((n, threading.current_thread().name)))
    timer.call_later(6, done.set)
    while not done.is_set():
        timer.advance_clock(50)
    assert seen == [(number, "executor-order") for number in range(50)]
    timer.shutdown()
    assert threads_named("executor-order") == []


def test_shutdown_refuses_new_tasks_drops_waiting_ones_and_may_be_called_twice() -> None:
    timer = SystemTimer("closing")
    out: list[int] = []
    waiting = Recorder(60_000, out)
    timer.add(waiting)
    timer.add(Recorder(0, out))  # due: runs before the shutdown is over
    timer.shutdown()
    timer.shutdown()
    assert out == [0]
    assert timer.size == 0
    assert not waiting.waiting
    assert not waiting.cancel()
    assert not timer.advance_clock(0)
    with pytest.raises(TimerClosedError, match="closing"):
        timer.add(Recorder(1, out))
    assert threads_named("executor-closing") == []


def test_a_closed_timer_leaves_the_task_where_it_waits(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []
    task = Recorder(5, out)
    timer.add(task)
    closed = SystemTimer("closed")
    closed.shutdown()
    with pytest.raises(TimerClosedError):
        closed.add(task)
    clock.advance(5)
    timer.advance_clock(0)
    assert out == [5]


def test_a_task_may_advance_the_clock_itself(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []

    def hurry() -> None:
        clock.advance(1)
        timer.advance_clock(0)

    timer.call_later(1, hurry)
    timer.add(Recorder(2, out))
    clock.advance(1)
    timer.advance_clock(0)
    assert out == [2]


def test_a_task_may_shut_its_own_timer_down() -> None:
    timer = SystemTimer("suicide")
    timer.call_later(0, timer.shutdown)
    while threads_named("executor-suicide"):
        timer.advance_clock(1)
    with pytest.raises(TimerClosedError):
        timer.call_later(1, print)


class TestWaiting:
    """`advance_clock` waits for the next bucket and notices everything that could make it due sooner."""

    def test_gives_up_after_the_timeout(self, timer: SystemTimer) -> None:
        assert not timer.advance_clock(1)
        assert not timer.advance_clock(-5)

    def test_waits_for_the_bucket(self) -> None:
        timer = SystemTimer("real", executor=lambda task: task.run())
        out: list[int] = []
        timer.add(Recorder(20, out))
        assert timer.advance_clock(60_000)  # may fall a level first
        while timer.size:
            timer.advance_clock(60_000)
        assert out == [20]
        timer.shutdown()

    def waiter(self, timer: SystemTimer) -> tuple[threading.Thread, list[bool]]:
        result: list[bool] = []
        thread = threading.Thread(target=lambda: result.append(timer.advance_clock(60_000)))
        thread.start()
        while not timer._sleeping:
            thread.join(0.001)
        return thread, result

    def test_an_earlier_task_wakes_it(self) -> None:
        timer = SystemTimer("wake", executor=lambda task: task.run())
        out: list[int] = []
        timer.add(Recorder(600_000, out))
        thread, result = self.waiter(timer)
        timer.add(Recorder(1, out))
        thread.join(30)
        assert result == [True]
        while timer.size > 1:  # it fell a level first, if the waiter took its time to start
            timer.advance_clock(60_000)
        assert out == [1]
        timer.shutdown()

    def test_a_manual_clock_wakes_it(self, timer: SystemTimer, clock: ManualClock) -> None:
        out: list[int] = []
        timer.add(Recorder(2, out))
        thread, result = self.waiter(timer)
        clock.advance(2)
        thread.join(30)
        assert result == [True]
        assert out == [2]

    def test_shutdown_wakes_it(self) -> None:
        timer = SystemTimer("bye")
        thread, result = self.waiter(timer)
        timer.shutdown()
        thread.join(30)
        assert result == [False]


def test_a_manual_clock_never_goes_back_and_ends_after_292_years(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="292 years"):
        clock.advance(10**15)
    assert clock.now_ms == 0


def test_the_snapshot_tells_where_everything_is(timer: SystemTimer, clock: ManualClock) -> None:
    out: list[int] = []
    for delay_ms in (1, 2, 5, 30):
        timer.add(Recorder(delay_ms, out))
    seen = timer.snapshot()
    assert [(level.level, level.tick_ms, level.span_ms, level.hand) for level in seen.levels] == [
        (1, 1, 3, 0),
        (2, 3, 9, 0),
        (3, 9, 27, 0),
        (4, 27, 81, 0),
    ]
    assert [level.counts for level in seen.levels] == [(0, 1, 1), (0, 1, 0), (0, 0, 0), (0, 1, 0)]
    assert (seen.name, seen.now_ms, seen.size, seen.next_due_ms, seen.queued_buckets) == ("test", 0, 4, 1, 4)
    clock.advance(4)
    timer.advance_clock(0)
    seen = timer.snapshot()
    assert (seen.added, seen.expired, seen.fell, seen.cancelled, seen.failed) == (4, 2, 1, 0, 0)
    assert (seen.levels[0].current_ms, seen.levels[0].hand) == (3, 0)
    assert [(level.arrived, level.fell_in) for level in seen.levels] == [(3, 1), (1, 0), (0, 0), (1, 0)]
