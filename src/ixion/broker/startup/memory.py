"""Tunes how the C library handles freed memory: it keeps a little, and returns the rest to the system.

`keep_freed_memory`: every large request and response has a block of its own. glibc returns such a block to the system
when it is freed, and the kernel must clear and map the pages of the next one again. That took more than half of the
processor time of a 1 MB produce (2,100 µs; 900 µs without it). So up to 16 MB of freed memory is kept.
`MemoryKeeping` waits with that until there is traffic: it takes `ctypes`, 0.4 MB that an idle broker does not need.

`MemoryReturn`: responses to many slow readers, some hundred MB at worst, are freed one by one, and the process would
stay large after one bad minute. Once most of the unsent bytes are gone, the library is asked to release all it can.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

M_TRIM_THRESHOLD: Final = -1  # glibc's numbers
M_MMAP_THRESHOLD: Final = -3
KEPT_BYTES: Final = 16 << 20  # of freed memory at the end of the heap
LARGEST_KEPT: Final = 4 << 20  # bytes; a larger block goes back to the system as soon as it is freed
BUSY: Final = 1 << 20  # bytes received and sent from which on large requests are likely
MUCH: Final = 64 << 20  # unsent bytes at once from which on it is worth while


class MemoryKeeping:
    def __init__(self, workers: Executor, keep: Callable[[], None] | None = None) -> None:
        self._workers = workers
        self._keep = keep or keep_freed_memory
        self._begun = False

    def look(self, moved: int) -> None:
        """Called on the loop, twice a second. `moved`: bytes that were received and sent since the start."""
        if not self._begun and moved >= BUSY:
            self._begun = True
            self._workers.submit(self._keep)


class MemoryReturn:
    def __init__(self, workers: Executor, trim: Callable[[], None] | None = None) -> None:
        self._workers = workers
        self._trim = trim or trim_heap
        self._most = 0  # the most unsent bytes since memory was last returned

    def look(self, unsent: int) -> None:
        """Called on the loop, twice a second. `unsent`: bytes of responses that have not left."""
        self._most = max(self._most, unsent)
        if self._most >= MUCH and unsent < self._most // 4:
            self._most = unsent
            self._workers.submit(self._trim)


def trim_heap() -> None:
    trim = glibc_function("malloc_trim")
    if trim is not None:
        trim(0)


def keep_freed_memory() -> None:
    set_option = glibc_function("mallopt")
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, LARGEST_KEPT)
        set_option(M_TRIM_THRESHOLD, KEPT_BYTES)


def glibc_function(name: str) -> Callable[..., int] | None:
    """A function of glibc; None if the C library is another one."""
    if sys.platform != "linux":
        return None
    import ctypes  # 3 ms and 0.4 MB, on a worker

    return getattr(ctypes.CDLL(None), name, None)
