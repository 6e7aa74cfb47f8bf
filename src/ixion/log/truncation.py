"""Drops the end of a log, or all of it. The callers, both in `Log`, hold its lock.

A follower truncates to the offset where its log and the leader's diverge; what it drops was never committed. Order
matters: what may fail harmlessly, opening and reading, comes before the first change. Segments go from the last one on,
so that a crash on the way leaves a log without a hole, and what is cut off is synced at once, so that a power failure
cannot bring it back between records that were written in its place.

The log is broken from the first change to the last, and `truncating` says where it will end. If a change fails, files
and memory differ: the log takes neither appends nor reads until the truncation is finished, by another call or by
`Log.mend`. It must end where the first attempt would have ended it: that one may have cut off a batch by whose first
offset a second attempt would find the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.log.replay import rebuild_producers
from ixion.log.swapping import settle

if TYPE_CHECKING:
    from ixion.log.log import Log

HALFWAY: Final = "a truncation failed halfway"


def cut_end(log: Log, offset: int) -> None:
    """Drops every batch that ends at or after `offset`, which lies within the log."""
    last = log.segments.at(log.segments.slot_of(offset))
    last.get_ready(True)
    place = last.locate(offset)
    # A batch goes as a whole; what of it lay below the log start was deleted before and does not move the start back.
    end = offset if place is None else max(min(offset, place.base_offset), min(offset, log.log_start))
    _begin(log, end, False)
    while log.segments.active is not last:
        log.segments.active.delete()
        log.segments.remove(log.segments.active)
        log.new_names = True
    last.truncate(offset, log.clock_ms())
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
    _end(log)


def restart_at(log: Log, offset: int) -> None:
    """Drops everything; the log goes on at `offset`."""
    _begin(log, offset, True)
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
    _end(log)


def truncate(log: Log, offset: int) -> None:
    """Drops every record at or after `offset`, or finishes a truncation that failed halfway and goes on from there."""
    if log.truncating >= 0:
        offset = min(offset, log.truncating)
    if log.restarting or offset < log.segments.first.base_offset:
        restart_at(log, offset)
    else:
        cut_end(log, min(offset, log.end_offset))


def _begin(log: Log, end: int, restarting: bool) -> None:
    log.truncations += 1  # a compaction under way gives up
    settle(log)
    log.broken = HALFWAY
    log.truncating = end
    log.restarting = restarting


def _end(log: Log) -> None:
    log.truncating = -1
    log.restarting = False
    log.broken = ""
