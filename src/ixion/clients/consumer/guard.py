"""Lets one thread at a time use a consumer (steps 2 and 17 of the poll).

A consumer keeps positions, half-read fetches and sockets without locks. A second thread that calls meanwhile is a
mistake of the program, and gets an error at once. One thread after the other is fine. A forked child shares the
parent's sockets, so every call there is a mistake.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType


class ConcurrentUseError(RuntimeError):
    """The consumer is used by another thread, or in a forked child."""


class SingleThread:
    """`with guard:` around a call; calls may be nested, as from a rebalance listener."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._owner = 0  # thread id, 0 if no call is under way
        self._depth = 0
        self._mutex = threading.Lock()

    def __enter__(self) -> None:
        if os.getpid() != self._pid:
            raise ConcurrentUseError("this consumer belongs to the parent process; make a new one after a fork")
        me = threading.get_ident()
        with self._mutex:
            if self._owner not in (0, me):
                raise ConcurrentUseError("another thread uses this consumer; only wakeup() may be called from there")
            self._owner = me
            self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._mutex:
            self._depth -= 1
            if self._depth == 0:
                self._owner = 0
