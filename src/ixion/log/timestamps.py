"""Offsets by time: the first record at or after a timestamp, and the record with the largest one."""

from __future__ import annotations

from ixion.log.log import Log
from ixion.log.scan import Scan
from ixion.log.segment import Segment
from ixion.records.batch import BatchView
from ixion.records.layout import HEADER_SIZE


class TimedOffset:
    """A record found by time. The epoch is that of its batch; -1 if it has none."""

    __slots__ = ("leader_epoch", "offset", "timestamp")

    def __init__(self, timestamp: int, offset: int, leader_epoch: int) -> None:
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


def find_by_timestamp(log: Log, timestamp: int) -> TimedOffset | None:
    """The first record with this timestamp or a later one; None if all are earlier."""
    with log.lock:
        log.home.check_readable()
        try:
            for segment in log.segments.from_offset(log.log_start):
                if segment.max_timestamp >= timestamp:
                    start = max(segment.time_index.lookup(timestamp), log.log_start)
                    found = _search(segment, start, timestamp)
                    if found is not None:
                        return found
        except OSError as error:
            raise log.home.fail(f"searching {log.name} for time {timestamp}", error) from error
        return None


def find_max_timestamp(log: Log) -> TimedOffset | None:
    """The record with the largest timestamp, the first of them if there are several."""
    with log.lock:
        log.home.check_readable()
        best: Segment | None = None
        for segment in log.segments.from_offset(log.log_start):
            if segment.size and (best is None or segment.max_timestamp > best.max_timestamp):
                best = segment
        if best is None or best.max_timestamp < 0:
            return None
        try:
            start = max(best.time_index.lookup(best.max_timestamp), log.log_start)
            return _search(best, start, best.max_timestamp)
        except OSError as error:
            raise log.home.fail(f"searching {log.name} for its last time", error) from error


def _search(segment: Segment, start: int, timestamp: int) -> TimedOffset | None:
    place = segment.locate(start)
    if place is None:
        return None
    handle = segment.handle
    scan = Scan(handle, place.position, segment.size)
    while scan.step():
        head = BatchView(handle.read(HEADER_SIZE, scan.position), 0)
        if head.max_timestamp >= timestamp:
            whole = BatchView(handle.read(scan.size, scan.position), 0)
            for record in whole.records():
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimedOffset(int(record.timestamp), int(record.offset), int(whole.leader_epoch))
    return None
