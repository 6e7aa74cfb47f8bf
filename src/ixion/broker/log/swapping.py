"""The renames that end a compaction, in steps that can be finished later if one of them fails.

A new segment is `.cleaned` while it is written, then `.swap`. When the segments that it replaces are `.deleted`, it
gets its final name. `Log.swapping` is the new segment from the first rename until the last one is on the disk;
`Log.replaced` are the old segments that are not renamed yet. A start completes a `.swap` segment by the offsets in it.
So before a truncation, `settle` must complete or undo the swap.

The caller of `offer` and `take` holds the log's lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.broker.log.flushing import sync_folder
from ixion.broker.log.names import DELETED, SWAP
from ixion.broker.log.segment import Segment

if TYPE_CHECKING:
    from ixion.broker.log.log import Log


def offer(log: Log, fresh: Segment) -> None:
    """Renames the new segment to `.swap`: from now on a start completes the swap."""
    log.swapping = fresh
    log.swap_taken = False
    fresh.rename(SWAP)


def take(log: Log, old: list[Segment], fresh: Segment) -> None:
    """Replaces the old segments in the log, then renames the files."""
    log.segments.replace(old, [fresh])
    log.replaced = list(old)
    log.swap_taken = True
    _complete(log, fresh)


def settle(log: Log) -> None:
    """Finishes an interrupted swap durably: completes it if the log has the new segment, else undoes it.

    The caller does not hold the lock. No swap may go on meanwhile: the caller holds `replacing`, or has raised
    `truncations`.
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
    if fresh.suffix != DELETED:  # retention may have deleted it since
        fresh.rename("")
