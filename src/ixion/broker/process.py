"""The process that a broker lives in."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

_LOADED: Final = time.monotonic()


def age_seconds() -> float:
    """Since the process was started, the interpreter's own start included, to a hundredth; since this module was
    imported where the system does not tell."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # seconds after the machine's start
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _LOADED


def raise_file_limit() -> None:
    """Every partition and every connection is an open file; the soft limit is for programs that use select()."""
    try:
        import resource
    except ImportError:
        return  # not on this system
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            pass  # some systems say "unlimited" and do not mean it


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's where there is one, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
