"""Seals the active segment of a log and starts a new one. The caller holds the log's lock."""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.broker.log.segment import Segment

if TYPE_CHECKING:
    from ixion.broker.log.log import Log


def roll_at(log: Log, base_offset: int, now_ms: int) -> None:
    """Starts a new segment at `base_offset`. An empty active segment is replaced."""
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
        # Delete the new file: appends go on in the old segment, and at a start the file would hide their offsets.
        try:
            segment.delete()
        except OSError as error:
            log.break_off(f"segment {base_offset} can be neither created nor deleted", error)
        raise
    log.segments.add(segment)
    log.new_names = True
    jitter = log.config.segment_jitter_ms
    log.jitter_ms = 0
    if jitter:
        from random import randrange  # imported here: most logs have no jitter

        log.jitter_ms = randrange(min(jitter, log.config.segment_ms))
