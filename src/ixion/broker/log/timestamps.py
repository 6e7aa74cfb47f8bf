"""Finds offsets by time: the first record at or after a timestamp, and the record with the largest timestamp.

The time index has only ascending timestamps, so records with equal timestamps share one entry. A walk from that entry
to the next later timestamp could read the whole segment. But the offset index gets an entry whenever the time index may
get one. So the first batch with a later timestamp comes after the last offset entry before it, and the walk reads at
most index.interval.bytes:

    time index     (10, offset 0)                             (11, offset 800)
    offset index   (99) (199) (299) (399) (499) (599) (699) (799)        a search for time 11 begins at the batch of 799

The indexes are read under the log's lock; batches are read without it, in steps (see `timer.turns`), because one batch
may have millions of records. A batch is inflated in one step, which may take long: with narrow `limits` the search ends
with LongWorkError at such a batch, and can be repeated on a worker thread (`search_thoroughly`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from ixion.broker.log.breather import Breather
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.log import Log
from ixion.broker.log.scan import Scan
from ixion.broker.log.segment import Segment
from ixion.broker.log.view import Bound, limit_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.compression import DEFAULT_LIMITS, InflateLimits
from ixion.language.records.faults import LongWorkError
from ixion.language.records.record import Record
from ixion.timer.turns import Steps

RECORDS_A_STEP: Final = 256
BATCHES_A_STEP: Final = 64
LARGE: Final = 64 * 1024  # a batch in which one record may take milliseconds: it has many headers


class TimedOffset:
    """A record found by time. The epoch is that of its batch; -1 if it has none."""

    __slots__ = ("leader_epoch", "offset", "timestamp")

    def __init__(self, timestamp: int, offset: int, leader_epoch: int) -> None:
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


def search_thoroughly(steps: Steps[TimedOffset | None]) -> TimedOffset | None:
    """The result of a search. For a worker thread."""
    breather = Breather()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("TimedOffset | None", end.value)
        breather.step()


def search_by_timestamp(
    log: Log, timestamp: int, bound: Bound, limits: InflateLimits = DEFAULT_LIMITS
) -> Steps[TimedOffset | None]:
    """The first record at or after this timestamp; None if there is none, or if it lies beyond the bound."""
    after = -1
    end = limit_of(log, bound)
    try:
        while True:
            with log.lock:
                log.check_open()
                log.directory.check_readable()
                segment = _next_with(log, timestamp, after)
                if segment is None:
                    return None
                after = segment.base_offset
                start = log.log_start
                scan = _scan(segment, start, timestamp)
            found = yield from _walk(scan, start, timestamp, limits)
            if found is not None:
                return found if found.offset < end else None
    except CorruptFileError as damage:
        raise log.note_damage(damage) from damage
    except OSError as error:
        raise log.directory.fail(f"searching {log.name} for time {timestamp}", error) from error


def search_max_timestamp(log: Log, bound: Bound, limits: InflateLimits = DEFAULT_LIMITS) -> Steps[TimedOffset | None]:
    """The first record with the largest timestamp of the log; None if it lies beyond the bound, as in Kafka."""
    largest = -1
    rest: Scan | None = None  # over a segment whose largest timestamp may lie below the log start
    try:
        with log.lock:
            log.check_open()
            log.directory.check_readable()
            start = log.log_start
            for segment in log.segments.from_offset(start):
                if segment.size and _counts(segment, start):
                    largest = max(largest, segment.max_timestamp)
                elif segment.size:
                    rest = Scan(segment.handle, segment.index.lookup(start), segment.size)
        if rest is not None:
            largest = max(largest, (yield from _largest(rest, start, limits)))
    except CorruptFileError as damage:
        raise log.note_damage(damage) from damage
    except OSError as error:
        raise log.directory.fail(f"searching {log.name} for its largest timestamp", error) from error
    if largest < 0:
        return None
    return (yield from search_by_timestamp(log, largest, bound, limits))


def _counts(segment: Segment, start: int) -> bool:
    """Whether the batch with the largest timestamp lies at or after `start`."""
    if segment.base_offset >= start:
        return True
    place = segment.locate(segment.offset_of_max_timestamp)
    return place is not None and place.base_offset >= start


def _largest(scan: Scan, start: int, limits: InflateLimits) -> Steps[int]:
    largest = -1
    batches = 0
    while scan.step():
        batches += 1
        if batches % BATCHES_A_STEP == 0:
            yield
        if scan.base_offset >= start:
            largest = max(largest, int(scan.max_timestamp))
        elif scan.last_offset >= start:
            for number, record in enumerate(_records(scan.whole(), limits)):
                if record.offset >= start:
                    largest = max(largest, int(record.timestamp))
                if number % RECORDS_A_STEP == 0:
                    yield
    return largest


def _records(batch: BatchView, limits: InflateLimits) -> Iterator[Record]:
    """LongWorkError if the batch inflates beyond narrow limits."""
    if limits is not DEFAULT_LIMITS and batch.size_in_bytes > LARGE:
        raise LongWorkError
    try:
        return batch.records(limits)
    except KafkaError as refusal:
        if refusal.code == ErrorCode.MESSAGE_TOO_LARGE and limits is not DEFAULT_LIMITS:
            raise LongWorkError from refusal
        raise


def _next_with(log: Log, timestamp: int, after: int) -> Segment | None:
    """The first segment after base offset `after` that has this timestamp or a later one."""
    for segment in log.segments.from_offset(log.log_start):
        if segment.base_offset > after and segment.size and segment.max_timestamp >= timestamp:
            return segment
    return None


def _scan(segment: Segment, start: int, timestamp: int) -> Scan:
    """A scan from the last index entry before which every record is earlier, or below the log start."""
    position = segment.index.lookup(start)
    exceeds = segment.time_index.first_offset_at(timestamp)
    if exceeds < 0:  # the record comes after the last entry
        position = max(position, segment.index.last_position())
    else:
        position = max(position, segment.index.lookup(exceeds - 1))
    scan = Scan(segment.handle, position, segment.size)
    if position and not scan.peek():  # the index is wrong
        scan = Scan(segment.handle, 0, segment.size)
    return scan


def _walk(scan: Scan, start: int, timestamp: int, limits: InflateLimits) -> Steps[TimedOffset | None]:
    batches = 0
    while scan.step():
        batches += 1
        if batches % BATCHES_A_STEP == 0:
            yield
        if scan.max_timestamp < timestamp or scan.last_offset < start:
            continue
        batch = scan.whole()
        yield
        for number, record in enumerate(_records(batch, limits)):
            if record.timestamp >= timestamp and record.offset >= start:
                return TimedOffset(int(record.timestamp), int(record.offset), int(batch.leader_epoch))
            if number % RECORDS_A_STEP == 0:
                yield
    return None
