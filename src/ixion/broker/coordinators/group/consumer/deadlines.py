"""Timers by name: setting a timer again replaces the previous one."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ixion.timer.task import TimerTask
from ixion.timer.timer import Timer


class Deadlines:
    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._tasks: dict[Hashable, TimerTask] = {}

    def set(self, key: Hashable, delay_ms: int, act: Callable[[], object]) -> None:
        self.cancel(key)

        def run() -> None:
            self._tasks.pop(key, None)
            act()

        self._tasks[key] = self._timer.call_later(delay_ms, run)

    def set_if_absent(self, key: Hashable, delay_ms: int, act: Callable[[], object]) -> None:
        if key not in self._tasks:
            self.set(key, delay_ms, act)

    def cancel(self, key: Hashable) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    def clear(self) -> None:
        for key in list(self._tasks):
            self.cancel(key)
