"""Drops the end of a log, or all of it. The callers, both in `Log`, hold its lock.

A follower truncates to the offset where its log and the leader's diverge; what it drops was never committed. Order
matters: what may fail harmlessly, opening and reading, comes before the first change. Segments go from the last one on,
so that a crash on the way leaves a log without a hole, and what is cut off is synced at once, so that a power failure
cannot bring it back between records that were written in its place.

The log is broken from the first change to the last: if one of them fails it takes no appends, and the truncation can be
tried again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.log.replay import rebuild_producers

if TYPE_CHECKING:
    from ixion.log.log import Log

HALFWAY: Final = "a truncation failed halfway"


def cut_end(log: Log, offset: int) -> None:
    """Drops every batch that ends at or after `offset`, which lies within the log."""
    last = log.segments.at(log.segments.slot_of(offset))
    last.get_ready(True)
    last.locate(offset)
    log.truncations += 1
    log.broken = HALFWAY
    _drop_swapping(log)
    while log.segments.active is not last:
        log.segments.active.delete()
        log.segments.remove(log.segments.active)
        log.new_names = True
    # A batch goes as a whole; what of it lay below the log start was deleted before and does not move the start back.
    end = max(last.truncate(offset, log.clock_ms()), min(offset, log.log_start))
    log.recovery_point = min(log.recovery_point, end)
    log.log_start = min(log.log_start, end)
    log.high_watermark = min(log.high_watermark, end)
    log.epochs.truncate_end(end)
    log.epochs.write(False)
    log.snapshots.drop_above(end)
    if log.new_names:
        log.files.sync_dir(log.folder)
    rebuild_producers(log, log.log_start, end)
    log.end_offset = end
    log.broken = ""


def restart_at(log: Log, offset: int) -> None:
    """Drops everything; the log goes on at `offset`."""
    log.truncations += 1
    log.broken = HALFWAY
    _drop_swapping(log)
    old = list(log.segments)
    for segment in reversed(old):
        segment.delete()
    # There is an active segment at every moment: some look at it without the lock.
    log.start_segment(offset, log.clock_ms())
    log.segments.replace(old, [])
    log.epochs.clear()
    log.epochs.write(False)
    log.producers.clear(offset)
    log.snapshots.drop_all()
    log.log_start = log.end_offset = log.high_watermark = log.recovery_point = offset
    log.broken = ""


def _drop_swapping(log: Log) -> None:
    """Deletes, durably, what a compaction is about to put in place: a start would complete that."""
    if log.swapping is not None:
        log.swapping.delete()
        log.files.sync_dir(log.folder)
        log.swapping = None
