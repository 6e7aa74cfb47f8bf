"""Gives memory back to the system after many slow readers have gone.

Their responses, some hundred MB at worst, are freed one by one. The C library keeps freed memory for later, so the
process would stay large after one bad minute. Once most of the unsent bytes are gone, the library is asked to release
it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

MUCH: Final = 64 << 20  # bytes unsent at once after which it is worth while


class MemoryReturn:
    def __init__(self, unsent: Callable[[], int], workers: Executor, trim: Callable[[], None] | None = None) -> None:
        self._unsent = unsent
        self._workers = workers
        self._trim = trim or trim_heap
        self._most = 0  # since memory was last given back

    def look(self) -> None:
        """On the loop, every few seconds."""
        now = self._unsent()
        self._most = max(self._most, now)
        if self._most >= MUCH and now < self._most // 4:
            self._most = now
            self._workers.submit(self._trim)


def trim_heap() -> None:
    """glibc's malloc_trim; other C libraries need no such call, or have none."""
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
