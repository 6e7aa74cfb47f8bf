"""Seals the active segment of a log and begins another. The caller holds the log's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.log.segment import Segment

if TYPE_CHECKING:
    from ixion.log.log import Log


def roll_at(log: Log, base_offset: int, now_ms: int) -> None:
    """The new segment begins at `base_offset`. An active segment without records is replaced."""
    active = log.segments.active
    if active.size == 0:
        if active.base_offset != base_offset:
            start_segment(log, base_offset, now_ms)
            log.segments.remove(active)
            active.delete()
        return
    active.seal()
    log.producers.end_offset = base_offset
    log.snapshots.take(log.producers)
    start_segment(log, base_offset, now_ms)


def start_segment(log: Log, base_offset: int, now_ms: int) -> None:
    """Makes a new active segment."""
    segment = Segment(log.files, log.folder, base_offset, {}, now_ms)
    try:
        segment.create()
    except OSError:
        # Appends may go on in the old segment; a file with a name below their offsets would hide them at the start.
        try:
            segment.delete()
        except OSError as error:
            log.break_off(f"segment {base_offset} can be neither made nor deleted", error)
        raise
    log.segments.add(segment)
    log.new_names = True
    jitter = log.config.segment_jitter_ms
    log.jitter_ms = 0
    if jitter:
        from random import randrange  # most logs have none

        log.jitter_ms = randrange(min(jitter, log.config.segment_ms))
