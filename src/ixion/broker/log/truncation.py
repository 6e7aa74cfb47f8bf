"""Drops the end of a log, or all of it.

A follower truncates to the offset where its log and the leader's diverge; what it drops was never committed.

1. Without the log's lock: finish a swap that a compaction left halfway (see `swapping`).
2. Under the lock: cut. First open and read all that is needed, which may fail harmlessly. Then drop segments, the last
   one first, so that a crash leaves no gap in the log.
3. Without the lock, because a disk may take a second for it: sync the cut, and lower checkpoints that lie beyond the
new
   end. Reads go on meanwhile. Appends are refused: after a power failure now, a truncated record could come back among
   new records, or recovery could skip them.
4. Under the lock: accept appends again.

If a change in step 2 fails, files and memory differ. `truncating` is the new end, and the log refuses appends and reads
until the truncation is finished, by another call or by `Log.mend`. The second attempt must use the same end: it cannot
compute it again if the first attempt has cut off the batch with that offset. If step 3 fails, the log refuses appends
until another call or `Log.mend` has synced the cut.

Another truncation may begin during step 3. The last one to cut makes the log accept appends again.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.broker.log.directory_state import NO_ROOM
from ixion.broker.log.flushing import sync_folder
from ixion.broker.log.handle import Handle
from ixion.broker.log.replay import rebuild_producers
from ixion.broker.log.rolling import start_segment
from ixion.broker.log.swapping import settle

if TYPE_CHECKING:
    from ixion.broker.log.log import Log

HALFWAY: Final = "a truncation failed halfway"
SYNCING: Final = "a truncation is being synced"


def truncate(log: Log, offset: int) -> None:
    """Drops every record at or after `offset`, after finishing a truncation that failed halfway."""
    _run(log, offset, False)


def restart_at(log: Log, offset: int) -> None:
    """Drops all records; the log continues at `offset`."""
    _run(log, offset, True)


class Cut:
    """The changes that step 3 must sync."""

    __slots__ = ("handle", "names")

    def __init__(self, handle: Handle | None, names: bool) -> None:
        self.handle: Final = handle  # of the segment that was cut; None if all were dropped
        self.names: Final = names  # files were made or deleted


def _run(log: Log, offset: int, everything: bool) -> None:
    cut: Cut | None = None
    while cut is None:
        with log.lock:
            log.truncations += 1  # a compaction under way gives up
        settle(log)
        with log.lock:
            if log.swapping is None:  # otherwise another compaction has just begun a swap: settle that first
                cut = _cut(log, offset, everything)
    _make_durable(log, cut)


def _cut(log: Log, offset: int, everything: bool) -> Cut:
    log.check_not_closed()
    if everything:
        return _cut_all(log, offset)
    if log.truncating >= 0:
        offset = min(offset, log.truncating)
    if log.restarting or offset < log.segments.first.base_offset:
        return _cut_all(log, offset)
    return _cut_end(log, min(offset, log.end_offset))


def _cut_end(log: Log, offset: int) -> Cut:
    """Drops every batch that ends at or after `offset`, which lies within the log."""
    last = log.segments.at(log.segments.slot_of(offset))
    last.get_ready(True)
    place = last.locate(offset)
    # A batch is dropped as a whole. Its records below the log start were deleted before: the log start does not go
    # back.
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
    _lower_barrier(log, end)
    log.epochs.truncate_end(end)
    log.epochs.write()
    if log.snapshots.drop_above(end):
        log.new_names = True
    rebuild_producers(log, log.log_start, end, log.high_watermark)
    log.end_offset = end
    return _end(log, last.handle)


def _cut_all(log: Log, offset: int) -> Cut:
    _begin(log, offset, True)
    old = list(log.segments)
    for segment in reversed(old):
        segment.delete()
    # The log must always have an active segment: some code reads it without the lock.
    start_segment(log, offset, log.clock_ms())
    log.segments.replace(old, [])
    log.epochs.clear()
    log.epochs.write()
    log.producers.clear(offset)
    log.snapshots.drop_all()
    log.log_start = log.end_offset = log.high_watermark = log.recovery_point = offset
    _lower_barrier(log, offset)
    return _end(log, None)


def _lower_barrier(log: Log, end: int) -> None:
    """The records that replace the dropped ones are not due yet."""
    if log.config.delivery_delay_ms:
        log.visible_end = min(log.visible_end, end)


def _begin(log: Log, end: int, restarting: bool) -> None:
    log.truncations += 1  # aborts a compaction that began after the swap was settled
    log.broken = HALFWAY
    log.truncating = end
    log.restarting = restarting


def _end(log: Log, handle: Handle | None) -> Cut:
    log.truncating = -1
    log.restarting = False
    log.broken = SYNCING
    cut = log.unsynced_cut = Cut(handle, log.new_names)
    log.new_names = False
    return cut


def _make_durable(log: Log, cut: Cut) -> None:
    try:
        if cut.handle is not None:
            cut.handle.sync()
        if cut.names:
            sync_folder(log)
        log.directory.lower_checkpoints(log.topic, log.partition, log.end_offset)
    except BaseException as error:
        with log.lock:
            log.new_names = log.new_names or cut.names
            if log.unsynced_cut is cut and log.broken == SYNCING:
                log.broken = f"a truncation was not synced: {error}"
            # A sync on a full disk may have dropped dirty pages of the remaining log; see `flushing`.
            log.must_rewrite = log.must_rewrite or (isinstance(error, OSError) and error.errno in NO_ROOM)
        raise
    with log.lock:
        if log.unsynced_cut is cut:
            log.unsynced_cut = None
            if log.broken == SYNCING:
                log.broken = ""
