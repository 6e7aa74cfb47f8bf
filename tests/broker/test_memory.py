"""When memory is given back to the system."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ixion.broker.startup.memory import BUSY, MUCH, MemoryKeeping, MemoryReturn, trim_heap


def test_memory_is_given_back_once_much_was_unsent_and_is_no_more() -> None:
    unsent = 0
    trimmed: list[int] = []
    with ThreadPoolExecutor(1) as workers:
        memory = MemoryReturn(workers, lambda: trimmed.append(unsent))
        for unsent in (0, MUCH - 1, 0, MUCH, MUCH // 2):
            memory.look(unsent)
        workers.submit(int).result()
        assert trimmed == []
        unsent = MUCH // 8
        memory.look(unsent)
        workers.submit(int).result()
        assert trimmed == [MUCH // 8]
        memory.look(unsent)
        workers.submit(int).result()
        assert len(trimmed) == 1


def test_freed_memory_is_kept_once_there_is_traffic() -> None:
    kept: list[str] = []
    with ThreadPoolExecutor(1) as workers:
        memory = MemoryKeeping(workers, lambda: kept.append("kept"))
        memory.look(BUSY - 1)
        workers.submit(int).result()
        assert kept == []
        for _ in range(3):
            memory.look(BUSY)
        workers.submit(int).result()
        assert kept == ["kept"]


def test_the_c_library_gives_freed_memory_back() -> None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_trim"):
        pytest.skip("this C library has no malloc_trim")
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    size, count = 2000, 20_000
    blocks = [library.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    full = resident_bytes()
    for block in blocks[:-1]:  # the last one keeps the library from shrinking the heap by itself
        library.free(block)
    trim_heap()
    assert resident_bytes() < full - size * count // 2
    library.free(blocks[-1])


FAULTS = """
import resource, sys
from ixion.broker.startup.memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
parts = [b"x" * 200_000 for _ in range(5)]
b"".join(parts)
before = faults()
for _ in range(50):
    frames = [b"".join(parts) for _ in range(8)]  # 1 MB each, as requests that come and go
    del frames
print(faults() - before)
"""


def test_large_requests_find_the_memory_of_those_before_them() -> None:
    if not hasattr(ctypes.CDLL(None), "mallopt"):
        pytest.skip("this C library has no mallopt")
    kept, fresh = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True).stdout)
        for how in ("keep", "default")
    )
    assert kept < 4_000 < 40_000 < fresh  # 2,000 pages once, or again every time


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
