"""Retention: which segments to delete, and how, in two steps.

A segment is deleted if all of it is older than retention.ms (by its largest timestamp, or by its file's age if no
record has one), if the log without it has at least retention.bytes, or if all of it lies below the log start. The first
two rules need cleanup.policy=delete. The oldest segments go first, none beyond the high watermark.

Step one, under the log's lock: the segment leaves the log, and its files get the suffix `.deleted`. Step two, after
file.delete.delay.ms: the files are deleted. The next start deletes such files that a crash left.

Files that recovery has set aside are deleted after a month, or while the disk is full; see `aside`.
"""

from __future__ import annotations

import os

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.log import Log
from ixion.broker.log.names import DELETED, LOG
from ixion.broker.log.rolling import roll_at
from ixion.broker.log.segment import Segment
from ixion.broker.log.swapping import settle
from ixion.broker.log.view import Bound, limit_of


def retain(log: Log, now_ms: int) -> int:
    """Step one; returns how many segments left the log."""
    # This log is being compacted: skip it until the next round.
    if not log.replacing.acquire(False):
        return 0
    try:
        return _retain(log, now_ms)
    finally:
        log.replacing.release()


def _retain(log: Log, now_ms: int) -> int:
    if _is_out_of_use(log):
        return 0
    try:
        settle(log)
    except OSError as error:
        raise log.directory.fail(f"finishing a compaction of {log.name}", error) from error
    with log.lock:
        if _is_out_of_use(log):
            return 0
        config = log.config
        try:
            if log.aside.names:
                log.aside.drop_due(now_ms, log.directory.full)
            count = _below_log_start(log)
            if config.delete:
                count = max(count, _too_old(log, now_ms), _too_much(log))
            if not count:
                return 0
            doomed = [log.segments.at(slot) for slot in range(count)]
            if count == len(log.segments):
                # All segments go, and the log needs an active segment.
                roll_at(log, log.end_offset, now_ms)
            for segment in doomed:
                take_out(log, segment, now_ms)
        except OSError as error:
            raise log.directory.fail(f"deleting old segments of {log.name}", error) from error
        except CorruptFileError as damage:
            raise log.note_damage(damage) from damage
        return count


def _is_out_of_use(log: Log) -> bool:
    return log.closed or log.directory.offline or log.truncating >= 0


def take_out(log: Log, segment: Segment, now_ms: int) -> None:
    """Removes the first segment from the log. The caller holds the log's lock.

    If its log file cannot be renamed, the segment stays, and the next call retries. If only an index cannot be renamed,
    the segment is removed, because a start would delete it.
    """
    try:
        segment.rename(DELETED)
    finally:
        if segment.suffix == DELETED:
            log.segments.remove(segment)
            log.doomed.append((now_ms + log.config.file_delete_delay_ms, segment))
            if log.segments.first.base_offset > log.log_start:
                log.move_log_start(log.segments.first.base_offset)
    if segment.base_offset in log.snapshots.offsets:
        log.snapshots.drop(segment.base_offset)


def delete_doomed(log: Log, now_ms: int) -> int:
    """Step two; returns how many segments were deleted. Blocks; call it on a worker thread."""
    with log.lock:
        due = [entry for entry in log.doomed if entry[0] <= now_ms]
        log.doomed = [entry for entry in log.doomed if entry[0] > now_ms]
    deleted = 0
    try:
        for _, segment in due:
            segment.delete()
            deleted += 1
    except OSError as error:
        raise log.directory.fail(f"deleting files of {log.name}", error) from error
    finally:
        if deleted < len(due):
            with log.lock:
                log.doomed = due[deleted:] + log.doomed  # for the next call
    return deleted


def _deletable(log: Log, slot: int) -> bool:
    """Whether consumers can read everything in the segment. An empty active segment is not deleted.

    Records that are not due yet (`replica.delivery_delay`) stay, whatever retention.bytes says.
    """
    end = log.segments.end_of(slot, log.end_offset)
    return end <= limit_of(log, Bound.VISIBLE) and (log.segments.at(slot).size > 0 or slot < len(log.segments) - 1)


def _below_log_start(log: Log) -> int:
    slot = 0
    while slot < len(log.segments) - 1 and log.segments.end_of(slot, log.end_offset) <= log.log_start:
        slot += 1
    return slot


def _too_old(log: Log, now_ms: int) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    slot = 0
    while slot < len(log.segments) and _deletable(log, slot):
        segment = log.segments.at(slot)
        newest = segment.max_timestamp
        if newest < 0 and segment.size:
            newest = int(os.stat(segment.path(LOG)).st_mtime * 1000)
        if now_ms - newest <= limit:
            break
        slot += 1
    return slot


def _too_much(log: Log) -> int:
    limit = log.config.retention_bytes
    if limit < 0:
        return 0
    excess = log.size - limit
    slot = 0
    while slot < len(log.segments) and _deletable(log, slot) and excess >= log.segments.at(slot).size:
        excess -= log.segments.at(slot).size
        slot += 1
    return slot
