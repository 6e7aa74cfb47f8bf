"""The load throws, cancels and runs tasks, and nothing of it is left afterwards."""

from __future__ import annotations

import threading
import time

from ixion.cli.wheel.load import WheelLoad


def wait_for_tasks(load: WheelLoad, *, run: int, cancelled: int) -> None:
    while sum(load.lateness.counts()) < run or load.timer.snapshot().cancelled < cancelled:
        time.sleep(0.01)


def test_every_task_ran_or_was_cancelled_or_still_waits() -> None:
    before = set(threading.enumerate())
    with WheelLoad(rate=2000, cancel=0.5, seed=1) as load:
        wait_for_tasks(load, run=20, cancelled=20)
        last = load.stop()
    assert last.added == last.expired + last.cancelled + last.size
    assert last.added == sum(level.arrived - level.fell_in for level in last.levels)
    assert last.expired == sum(load.lateness.counts())  # the worker has run all it was given
    assert last.failed == 0
    assert set(threading.enumerate()) <= before, "one of an earlier test may end meanwhile"


def test_nothing_is_cancelled_unless_asked_for() -> None:
    with WheelLoad(rate=2000, cancel=0, seed=1) as load:
        wait_for_tasks(load, run=20, cancelled=0)
        assert load.stop().cancelled == 0


def test_an_exception_inside_leaves_no_thread_either() -> None:
    before = set(threading.enumerate())
    try:
        with WheelLoad(rate=100, cancel=0.5):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert set(threading.enumerate()) <= before, "one of an earlier test may end meanwhile"
