"""The interface of every timer, whether a thread or an event loop advances its clock."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import SupportsIndex

from ixion._native import mypyc_attr
from ixion.timer.snapshot import TimerSnapshot
from ixion.timer.task import CallTask, TimerTask

log = logging.getLogger(__name__)


@mypyc_attr(native_class=False)
class TimerClosedError(RuntimeError):
    """A task was added to a timer that has been shut down."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Timer:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def add(self, task: TimerTask) -> bool:
        """Run the task after its delay. True: it waits. False: it is due and runs at once, or it was cancelled."""
        raise NotImplementedError

    def call_later(self, delay_ms: SupportsIndex, fn: Callable[..., object], *args: object) -> TimerTask:
        """Call `fn(*args)` after the delay; cancel it with the returned task."""
        task = CallTask(delay_ms, fn, args)
        self.add(task)
        return task

    def withdraw(self, task: TimerTask, for_good: bool) -> bool:
        """Take a waiting task out, and cancel it if `for_good`, in one step. True if it was waiting here.

        For `task.cancel()` and moves to another timer; users call those.
        """
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of waiting tasks."""
        raise NotImplementedError

    def snapshot(self) -> TimerSnapshot:
        raise NotImplementedError

    def tasks(self, level: int, index: int, most: int) -> list[TimerTask]:
        """The first tasks that wait in a bucket, at most so many. Level 1 is the finest; see the snapshot."""
        raise NotImplementedError

    def shutdown(self) -> None:
        """Drop waiting tasks and stop threads. A second call does nothing."""
        raise NotImplementedError

    def count_failure(self) -> None:
        raise NotImplementedError

    def run_task(self, task: TimerTask) -> None:
        """Run a due task; if it raises, log and count it."""
        try:
            task.run()
        except Exception:
            self.count_failure()
            log.exception("timer %s: task %s raised", self.name, task.describe())
