"""The process that a broker lives in."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, Final

from ixion.timer.stall_watch import StallWatch

_LOADED: Final = time.monotonic()


def age_seconds() -> float:
    """The age of the process, with the start of the interpreter, to a hundredth; if the system does not report it, the
    time since this module was imported."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # seconds after the machine's start
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _LOADED


def raise_file_limit() -> None:
    """Raise the soft limit on open files: every partition and every connection is one."""
    try:
        import resource
    except ImportError:
        return  # not on this system
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            pass  # some systems report "unlimited", but refuse to set it


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop if it is installed, else asyncio's loop; either runs every callback under a `StallWatch`."""
    base: type[asyncio.AbstractEventLoop]
    try:
        import uvloop
    except ImportError:
        base = asyncio.SelectorEventLoop
    else:
        base = uvloop.Loop
    return watched(base)


def watched(base: Any) -> Callable[[], asyncio.AbstractEventLoop]:
    """A loop class whose callbacks, with the steps of tasks, are turns of its `stalls`.

    A task schedules every step by `call_soon`, so these three methods see everything that runs on the loop except
    socket callbacks; `network.connection` reports those.
    """

    class WatchedLoop(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stalls = StallWatch()
            self.stalls.enabled = False  # until the broker has started

        def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_soon(self.stalls.run, callback, *args, context=context)

        def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_soon_threadsafe(self.stalls.run, callback, *args, context=context)

        def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
            return super().call_later(delay, self.stalls.run, callback, *args, context=context)

    return WatchedLoop


def stall_watch_of(loop: asyncio.AbstractEventLoop) -> StallWatch:
    """The watch of a loop from `loop_factory`. On any other loop only requests and timer tasks are watched."""
    found = getattr(loop, "stalls", None)
    return found if isinstance(found, StallWatch) else StallWatch()
