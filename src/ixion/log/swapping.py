"""The change of names that ends a compaction, in steps that can be finished later if one of them fails.

A new segment is `.cleaned` while it is written, then `.swap`, then it gets its proper name, after the segments that it
replaces have become `.deleted`. `Log.swapping` is the new segment from the first change of a name until the last one is
on the disk; `Log.replaced` are the old segments that still have their proper names. A start completes what it finds as
`.swap`, by the offsets that are in it. So before a log is truncated, nothing of that may be left: `settle` sees to it.

The caller of `offer` and `take` holds the log's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.log.flushing import sync_folder
from ixion.log.names import DELETED, SWAP
from ixion.log.segment import Segment

if TYPE_CHECKING:
    from ixion.log.log import Log


def offer(log: Log, fresh: Segment) -> None:
    """Gives the new segment the name by which a start completes the swap."""
    log.swapping = fresh
    log.swap_taken = False
    fresh.rename(SWAP)


def take(log: Log, old: list[Segment], fresh: Segment) -> None:
    """The log has the new segment in place of the old ones; the names follow."""
    log.segments.replace(old, [fresh])
    log.replaced = list(old)
    log.swap_taken = True
    _complete(log, fresh)


def settle(log: Log) -> None:
    """Finishes an interrupted swap durably: completes it if the log has taken the new segment, else undoes it.

    For a caller without the lock. A swap under way must not go on: the caller holds `replacing`, or has counted a
    truncation.
    """
    with log.lock:
        fresh = log.swapping
        if fresh is None:
            return
        if log.swap_taken:
            _complete(log, fresh)
        else:
            fresh.delete()
    sync_folder(log)
    with log.lock:
        if log.swapping is fresh:
            log.swapping = None


def _complete(log: Log, fresh: Segment) -> None:
    while log.replaced:
        log.replaced[0].rename(DELETED)
        log.doomed.append((log.clock_ms() + log.config.file_delete_delay_ms, log.replaced.pop(0)))
    if fresh.suffix != DELETED:  # as retention may have marked it since
        fresh.rename("")
