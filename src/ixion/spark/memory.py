"""Keeps freed memory in a worker, for the next fetch.

A worker frees the megabytes of one fetch just before it needs as many for the next. glibc gives such memory back to the
kernel, which then clears and maps every page again: a seventh of a worker's time for records of 1 KB. But glibc learns:
it keeps twice the size of the largest block that was ever mapped by itself and freed (M_MMAP_THRESHOLD in mallopt(3)).
So we show it one. A block that is never touched takes no memory. Other allocators lose nothing by it.
"""

from __future__ import annotations

from typing import Final

BLOCK_BYTES: Final = 16 * 1024 * 1024  # glibc learns from blocks of up to 32 MB


def keep_freed_memory() -> None:
    bytes(BLOCK_BYTES)
