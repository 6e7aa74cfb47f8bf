"""Where work that blocks is done: on pools of worker threads, which a broker makes with a function that it is given.

`Options.make_pool` is that function for a whole broker. A simulation passes in one of its own, and then no thread is
started: the work runs as a later step of the same loop, in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor

MakePool = Callable[[int, str], Executor]  # how many threads, and the name that they begin with


def threads(count: int, name: str) -> Executor:
    """The threads are started with the first work that needs them."""
    return ThreadPoolExecutor(count, name)
