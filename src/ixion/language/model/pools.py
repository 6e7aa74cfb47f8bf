"""Pools of worker threads for blocking work. A broker makes them with a function that is passed in.

`Options.make_pool` is that function. A simulation passes its own, which starts no threads: the work runs as a later
step of the same loop, in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

MakePool = Callable[[int, str], Executor]  # number of threads, and the prefix of their names


def threads(count: int, name: str) -> Executor:
    """A pool that starts its threads when work needs them."""
    return ThreadPoolExecutor(count, name)
