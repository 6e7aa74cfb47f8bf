"""A fresh interpreter for one measurement, so that what ran before leaves no garbage and no memory behind."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def fresh(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a module-level FUNCTION called in a new process."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


def resident_bytes() -> int:
    """The memory this process occupies now, as the kernel counts it."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096
