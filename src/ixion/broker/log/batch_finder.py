"""Finds batches of a log without reading their records: for a reader that chooses among them.

A share partition looks at the offsets of the batches, decides which records a member gets, and then sends the bytes
from the first to the last batch of these, as they are in the file. Only headers are read to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.handle import FileSlice
from ixion.broker.log.log import Log
from ixion.broker.log.reader import AT_ONCE, UNVERIFIED, check_offset
from ixion.broker.log.scan import Scan
from ixion.broker.log.segment import Segment
from ixion.broker.log.txn_tracker import TxnTracker
from ixion.broker.log.view import Bound, aborted_within, limit_of


class FoundBatch(NamedTuple):
    base: int
    last: int
    aborted: bool  # of an aborted transaction; known with VISIBLE_STABLE only
    position: int
    size: int


class FoundBatches:
    """Neighbouring batches of one segment."""

    __slots__ = ("_log", "_segment", "batches")

    def __init__(self, log: Log, segment: Segment, batches: list[FoundBatch]) -> None:
        self._log: Final = log
        self._segment: Final = segment
        self.batches: Final = batches

    def records(self, first: int, last: int) -> bytes | FileSlice:
        """The batches that contain the offsets `first` to `last`, as bytes or as a slice of the file."""
        wanted = [batch for batch in self.batches if batch.last >= first and batch.base <= last]
        position = wanted[0].position
        size = wanted[-1].position + wanted[-1].size - position
        log = self._log
        with log.lock:
            try:
                handle = self._segment.handle
                return (
                    handle.read(size, position) if size <= AT_ONCE else FileSlice(log.directory, handle, position, size)
                )
            except OSError as error:
                raise log.directory.fail(f"reading {log.name} at {first}", error) from error


def find_batches(
    log: Log, offset: int, bound: Bound, max_bytes: int, wanted: Callable[[int, int], int], most: int
) -> FoundBatches | None:
    """Batches from the one that contains `offset` on, up to `max_bytes` (the first may be larger), until `most` records
    are found, or until a batch has none that is wanted.

    `wanted` counts the wanted records in a range of offsets. None: there is no batch up to the bound yet. KafkaError
    if the log cannot be read there.
    """
    with log.lock:
        try:
            return _find(log, offset, bound, max_bytes, wanted, most)
        except CorruptFileError as damage:
            raise log.note_damage(damage) from damage
        except OSError as error:
            raise log.directory.fail(f"reading {log.name} at {offset}", error) from error


def _find(
    log: Log, offset: int, bound: Bound, max_bytes: int, wanted: Callable[[int, int], int], most: int
) -> FoundBatches | None:
    log.check_open()
    log.directory.check_readable()
    check_offset(log, offset)
    limit = limit_of(log, bound)
    if offset >= limit:
        return None
    segments = log.segments
    for slot in range(max(segments.slot_of(offset), 0), len(segments)):
        segment = segments.at(slot)
        place = segment.locate(offset)
        if place is None:
            continue  # compaction may have removed the end of this segment
        if place.last_offset >= limit:
            return None
        aborted = aborted_within(log, offset, limit) if bound == Bound.VISIBLE_STABLE else []
        tracker = TxnTracker(aborted) if aborted else None
        most_bytes = max_bytes
        known = 0
        if not segment.trusted:
            known = segment.verified_up_to(place.position)
            most_bytes = min(most_bytes, max(known, place.position + place.size) + UNVERIFIED - place.position)
        scan = Scan(segment.handle, place.position, segment.size)
        scan.chunk = place.chunk
        scan.chunk_start = place.chunk_start
        batches: list[FoundBatch] = []
        found = 0
        while found < most and scan.step() and scan.last_offset < limit:
            end = int(scan.position + scan.size)
            if batches and end - place.position > most_bytes:
                break
            base, last = int(scan.base_offset), int(scan.last_offset)
            count = wanted(max(base, offset), last)
            if batches and not count:
                break
            is_aborted = tracker is not None and tracker.is_aborted(scan.head())
            batches.append(FoundBatch(base, last, is_aborted, int(scan.position), int(scan.size)))
            found += 0 if is_aborted else count
        if not batches:
            return None
        stop = batches[-1].position + batches[-1].size
        if not segment.trusted and stop > known:
            segment.verify(known, stop - known)
        segment.hint(batches[-1].last + 1, stop)
        return FoundBatches(log, segment, batches)
    return None


def bytes_between(log: Log, offset: int, limit: int) -> int:
    """The bytes from the batch with `offset` up to `limit`; those of a whole segment, if they are in several."""
    with log.lock:
        segment = log.segments.active
        if offset < segment.base_offset:
            return log.segments.first.size + segment.size
        try:
            place = segment.locate(offset)
            beyond = segment.locate(limit) if limit < log.end_offset else None
        except (CorruptFileError, OSError):
            return segment.size  # the read will say it
        return 0 if place is None else (segment.size if beyond is None else beyond.position) - place.position
