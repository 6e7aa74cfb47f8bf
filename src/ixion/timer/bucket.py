"""One slot of a wheel: the tasks that fall due within the same tick of it.

A bucket is a ring of tasks with a dummy task as its root: an empty ring is the root linked to itself, so neither
insertion nor removal has an edge case. Not thread-safe: the timer that owns the wheel serialises access.
"""

from __future__ import annotations

from typing import Final

from ixion._native import i64
from ixion.timer.task import TimerTask

UNSET: Final = -1


class Bucket:
    __slots__ = ("_root", "count", "expiration_ms")

    def __init__(self) -> None:
        self._root = TimerTask(0)
        self._root._next = self._root._prev = self._root
        self.count: i64 = 0
        self.expiration_ms: i64 = UNSET  # when the bucket is due; UNSET while it is in no queue

    def set_expiration(self, expiration_ms: i64) -> bool:
        """Set the expiration. True if it changed: only then must the bucket be queued, so it is queued exactly once."""
        changed = self.expiration_ms != expiration_ms
        self.expiration_ms = expiration_ms
        return changed

    def add(self, task: TimerTask) -> None:
        root = self._root
        last = root._prev
        assert last is not None
        task._prev = last
        task._next = root
        last._next = task
        root._prev = task
        task._bucket = self
        self.count += 1

    def remove(self, task: TimerTask) -> None:
        before, after = task._prev, task._next
        assert before is not None
        assert after is not None
        before._next = after
        after._prev = before
        task._next = None
        task._prev = None
        task._bucket = None
        self.count -= 1

    def first(self, most: i64) -> list[TimerTask]:
        """The first tasks, at most so many. They stay where they are."""
        found: list[TimerTask] = []
        task = self._root._next
        while task is not self._root and task is not None and len(found) < most:
            found.append(task)
            task = task._next
        return found

    def empty_into(self, tasks: list[TimerTask]) -> None:
        """Take every task out, oldest first, and clear the expiration, so that the bucket can be reused."""
        root = self._root
        task = root._next
        assert task is not None
        root._next = root._prev = root
        self.count = 0
        self.expiration_ms = UNSET
        while task is not root:
            tasks.append(task)
            after = task._next
            assert after is not None
            task._next = None
            task._prev = None
            task._bucket = None
            task = after
