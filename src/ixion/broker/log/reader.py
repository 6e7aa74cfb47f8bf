"""Reads from a log: which bytes a fetch gets, as bytes or as a slice of the file.

A read returns whole batches from one segment. It begins with the batch that contains the requested offset; the client
skips earlier records of that batch. It ends with the last batch that fits `max_bytes`. With `min_one` the first batch
is returned whole however large it is, so that a reader always makes progress. Each reader names the bound up to which
it reads (`view`).

Batches that an earlier process has written are checked when they are first read. One read checks and returns at most
`UNVERIFIED` bytes of them, and its first batch.

`read` returns the bytes. `read_slice` leaves many bytes in the file, and the connection reads them piece by piece as
its client takes them. So a fetch of 50 MB has one piece in memory at a time, and other clients wait for one piece at
most. A piece that was just read is still in the processor's cache when it is sent, and no large buffer is allocated:
six fetches of 1 MB in one response cost half the processor time.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final, cast

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.handle import FileSlice
from ixion.broker.log.log import Log
from ixion.broker.log.segment import Place, Segment
from ixion.broker.log.txn_index import AbortedTxn
from ixion.broker.log.view import Bound, aborted_within, limit_of
from ixion.language.model.errors import ErrorCode, KafkaError

AT_ONCE: Final = 64 << 10  # bytes; up to this many are read at once
# Bytes written by an earlier process that one read checks and returns, besides its first batch: 2 ms of the event loop.
UNVERIFIED: Final = 512 << 10
ALL_AT_ONCE: Final = 2**62
# Bytes of a small read, read together with the header of its first batch: separate reads would cost a fetch of 4 KB a
# tenth of its time.
SMALL: Final = 16 << 10


class FetchSlice:
    """The result of a read; its bytes may still be in the file.

    They begin at `position` in segment `segment_base`; both are -1 if there are none.
    """

    __slots__ = ("aborted", "position", "records", "segment_base")

    def __init__(self, segment_base: int, position: int, records: bytes | FileSlice) -> None:
        self.segment_base: Final = segment_base
        self.position: Final = position
        self.records: Final = records
        self.aborted: list[AbortedTxn] | None = None  # filled at read_committed only

    @property
    def size(self) -> int:
        return len(self.records)


class FetchData:
    """The result of a read, with its bytes."""

    __slots__ = ("aborted", "records")

    def __init__(self, records: bytes, aborted: list[AbortedTxn] | None) -> None:
        self.records: Final = records
        self.aborted: Final = aborted


class Plan:
    """A planned read: `size` bytes of a segment from the `first` batch on, up to the batch at `next_offset`."""

    __slots__ = ("first", "next_offset", "segment", "size")

    def __init__(self, segment: Segment, first: Place, size: int, next_offset: int) -> None:
        self.segment: Final = segment
        self.first: Final = first
        self.size: Final = size
        self.next_offset: Final = next_offset


def read(log: Log, offset: int, max_bytes: int, bound: Bound, min_one: bool = True) -> FetchData:
    with log.lock:
        return read_held(log, offset, max_bytes, bound, min_one)


def read_held(log: Log, offset: int, max_bytes: int, bound: Bound, min_one: bool = True) -> FetchData:
    """As `read`, for a caller that holds the log's lock."""
    piece = _read(log, offset, max_bytes, bound, min_one, ALL_AT_ONCE)
    return FetchData(cast(bytes, piece.records), piece.aborted)


def read_slice(
    log: Log,
    offset: int,
    max_bytes: int,
    bound: Bound,
    min_one: bool = True,
    at_once: int = AT_ONCE,
) -> FetchSlice:
    """As `read`, but more than `at_once` bytes stay in the file."""
    with log.lock:
        return _read(log, offset, max_bytes, bound, min_one, at_once)


def _read(log: Log, offset: int, max_bytes: int, bound: Bound, min_one: bool, at_once: int) -> FetchSlice:
    try:
        plan = _plan(log, offset, max_bytes, bound, min_one)
        if plan is None:
            piece = FetchSlice(-1, -1, b"")
        else:
            handle = plan.segment.handle
            position = plan.first.position
            records: bytes | FileSlice | None
            if plan.size <= at_once:
                records = plan.first.read(plan.size) if plan.segment.trusted else None
                if records is None:
                    records = handle.read(plan.size, position)
            else:
                records = FileSlice(log.directory, handle, position, plan.size)
            piece = FetchSlice(plan.segment.base_offset, position, records)
        if bound == Bound.VISIBLE_STABLE:
            piece.aborted = [] if plan is None else aborted_within(log, offset, plan.next_offset)
        return piece
    except CorruptFileError as damage:
        raise log.note_damage(damage) from damage
    except OSError as error:
        raise log.directory.fail(f"reading {log.name} at {offset}", error) from error


def check_offset(log: Log, offset: int) -> None:
    if offset < log.log_start or offset > log.end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {log.name} is not in [{log.log_start}, {log.end_offset}]",
        )


def _plan(log: Log, offset: int, max_bytes: int, bound: Bound, min_one: bool) -> Plan | None:
    """None if there is nothing to read."""
    log.check_open()
    log.directory.check_readable()
    if max_bytes < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a fetch of {max_bytes} bytes")
    check_offset(log, offset)
    limit = limit_of(log, bound)
    if offset >= limit or (max_bytes == 0 and not min_one):
        return None
    segments = log.segments
    slot = max(segments.slot_of(offset), 0)
    while slot < len(segments):
        segment = segments.at(slot)
        first = segment.locate(offset, max_bytes if max_bytes <= SMALL else 0)
        if first is not None:
            if first.base_offset >= limit:
                return None
            end = segments.end_of(slot, log.end_offset)
            if limit >= end:
                stop = segment.size
                next_offset = end
            else:
                beyond = segment.locate(limit)
                stop = segment.size if beyond is None else beyond.position
                next_offset = limit
            if stop <= first.position:
                return None  # the limit lies inside the first batch
            if stop - first.position > max_bytes:
                if first.size > max_bytes and not min_one:
                    return None
                if first.size >= max_bytes:
                    stop, next_offset = first.position + first.size, first.last_offset + 1
                else:
                    stop, next_offset = segment.boundary(first, min(first.position + max_bytes, stop))
            if not segment.trusted:
                known = segment.verified_up_to(first.position)
                if stop > known:
                    most = max(known, first.position + first.size) + UNVERIFIED
                    if stop > most:
                        stop, next_offset = segment.boundary(first, most)
                    segment.verify(known, stop - known)
            segment.hint(next_offset, stop)
            return Plan(segment, first, stop - first.position, next_offset)
        # Compaction may have removed the end of this segment: go on with the next one.
        slot += 1
    return None
