"""Lets one task at a time use a consumer, and stands for the lock of the blocking face."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Any

from ixion.clients.consumer.guard import ConcurrentUseError


class SingleTask:
    """One task at a time: `with guard:` around a call; calls may be nested, as from a rebalance listener."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._owner: asyncio.Task[Any] | None = None
        self._depth = 0

    def __enter__(self) -> None:
        if os.getpid() != self._pid:
            raise ConcurrentUseError("this consumer belongs to the parent process; make a new one after a fork")
        me = asyncio.current_task()
        if self._depth and self._owner is not me:
            raise ConcurrentUseError("another task uses this consumer; only wakeup() may be called from there")
        self._owner = me
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None


class NoLock:
    """What the blocking face locks, one loop does in turns."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass
