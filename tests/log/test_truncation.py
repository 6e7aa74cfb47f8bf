"""What a log knows after it was truncated, and what becomes of a truncation that fails."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.names import LOG
from ixion.broker.log.prepare import Origin
from ixion.broker.log.retention import retain
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.faults import FaultyFiles
from tests.log.support import NOW, Box, Clock, QuickFiles, batch, find_by_timestamp, find_max_timestamp, marker, stored

# Rising, equal, and one that towers over what follows.
TIMES = [NOW + time for time in (5, 9, 3, 3, 40, 7, 8, 41, 41, 2, 60, 1, 61, 4, 4, 4)]


@pytest.mark.parametrize("interval", [0, 150, 1 << 20])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("end", range(1, len(TIMES) + 1))
def test_the_largest_timestamp_is_right_after_a_truncation(box: Box, end: int, interval: int, again: bool) -> None:
    box.config = LogConfig(index_interval_bytes=interval)
    log = box.open()
    for time in TIMES:
        log.append_as_leader(batch(b"x" * 30, timestamp=time), 0)
    if again:
        log.close()
        log = box.open(clean=True)
    log.truncate_to(end)
    largest = max(TIMES[:end])
    segment = log.segments.active
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (largest, TIMES.index(largest))
    found = find_max_timestamp(log)
    assert found is not None
    assert (found.timestamp, found.offset) == (largest, TIMES.index(largest))
    for time in set(TIMES[:end]):
        hit = find_by_timestamp(log, time)
        assert hit is not None
        assert hit.offset == next(offset for offset, other in enumerate(TIMES) if other >= time)
    assert find_by_timestamp(log, largest + 1) is None
    # What comes after is noted as if nothing had happened, and a start after a kill agrees.
    log.append_as_leader(batch(b"y", timestamp=NOW + 100), 0)
    assert segment.max_timestamp == NOW + 100
    log.abandon()
    assert box.open().segments.active.max_timestamp == NOW + 100


def test_retention_by_time_after_a_truncation(box: Box) -> None:
    box.config = LogConfig(retention_ms=1000)
    log = box.open()
    for number in range(10):
        log.append_as_leader(batch(b"x", timestamp=NOW + number), 0)
    log.truncate_to(5)
    log.raise_high_watermark(5)
    assert retain(log, NOW + 900) == 0
    assert retain(log, NOW + 1005) == 1
    assert log.log_start == 5


def test_a_rebuilt_index_knows_the_times_too(box: Box) -> None:
    box.config = LogConfig(index_interval_bytes=100)
    log = box.open()
    for time in TIMES:
        log.append_as_leader(batch(b"x" * 2000, timestamp=time), 0)
    log.close()
    path = next(iter(box.folder.glob("*.index")))
    data = bytearray(path.read_bytes())
    data[4:8] = b"\0\0\0\x07"  # no batch begins there
    path.write_bytes(data)
    log = box.open(clean=True)
    assert len(stored(log)) == len(TIMES)
    log.truncate_to(11)
    assert log.segments.active.max_timestamp == NOW + 60


CONFIG = LogConfig(segment_bytes=450, index_interval_bytes=50)


def begin(path: Path) -> tuple[Box, FaultyFiles, Log]:
    files = FaultyFiles()
    box = Box(path, CONFIG, files)
    log = box.open()
    for number in range(12):
        log.append_as_leader(batch(b"%d" % number * 20, producer=(1, 0, number), timestamp=NOW + number), number // 5)
        if number in (2, 6):
            log.append_as_leader(batch(b"gone", producer=(number, 0, 0), transactional=True), number // 5)
            log.append_as_leader(marker(number, 0, commit=False), number // 5, Origin.COORDINATOR)
    assert len(log.segments) > 3
    log.release_idle()
    log.release_idle()
    return box, files, log


def facts(log: Log) -> tuple[object, ...]:
    return (
        stored(log),
        log.end_offset,
        log.epochs.entries(),
        [txn.fields() for segment in log.segments for txn in segment.txn_index.entries()],
        [(segment.base_offset, segment.max_timestamp) for segment in log.segments],
        {entry.producer_id: entry.last_sequence for entry in log.producers.producers.values()},
    )


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("offset", [0, 5, 9])
def test_a_truncation_that_fails_at_any_call(tmp_path: Path, number: int, offset: int) -> None:
    _, files, log = begin(tmp_path / "counted")
    files.arm()
    log.truncate_to(offset)
    count = len(files.disarm())
    expected = facts(log)
    log.abandon()
    for at in range(1, count + 1):
        box, files, log = begin(tmp_path / str(at))
        files.arm(at, number)
        code = ErrorCode.NONE
        try:
            log.truncate_to(offset)
        except KafkaError as error:
            code = error.code
        files.disarm()
        if code == ErrorCode.NONE:  # a close that failed
            assert facts(log) == expected
        elif number != errno.EIO:
            log.directory.full = False  # as the disk guard finds out
            if log.broken:
                with pytest.raises(KafkaError):
                    log.append_as_leader(batch(b"refused"), 9)
            log.truncate_to(offset)
            assert facts(log) == expected
            assert log.append_as_leader(batch(b"more"), 9).first_offset == offset
        else:
            assert log.directory.offline
        log.abandon()
        again = Box(box.path, CONFIG, QuickFiles()).open()
        offsets = [offset for offset, _ in stored(again)]
        assert offsets == sorted(set(offsets))
        again.abandon()


def begin_managed(path: Path) -> tuple[LogManager, Log]:
    manager = LogManager([str(path)], clock_ms=Clock(), config_of=lambda _: CONFIG, files=QuickFiles())
    manager.load()
    return manager, manager.create("orders", 0)


@pytest.mark.parametrize("killed_halfway", [False, True])
def test_recovery_reads_records_that_replaced_flushed_ones(tmp_path: Path, killed_halfway: bool) -> None:
    """The checkpoint had a recovery point beyond the truncation; from the next append on it must not be believed."""
    manager, log = begin_managed(tmp_path)
    for number in range(20):
        log.append_as_leader(batch(b"old %d" % number * 10), 0)
    log.raise_high_watermark(20)
    log.flush()
    manager.checkpoints.write_all()
    if killed_halfway:  # after the cut, before the checkpoint is lowered
        log.directory.lower_checkpoints = lambda _topic, _partition, _end: None
    log.truncate_to(5)
    if killed_halfway:
        manager.abandon()
        manager, log = begin_managed(tmp_path)
        assert log.end_offset == 5
    for number in range(30):
        log.append_as_leader(batch(b"new %d" % number * 10), 1)
    sealed = next(segment for segment in log.segments if segment.base_offset > 5)
    path, size = Path(sealed.path(LOG)), sealed.size
    assert sealed.base_offset < 20
    manager.abandon()
    path.write_bytes(path.read_bytes()[: size - 1])  # the power failed: nothing since the truncation was synced
    manager, log = begin_managed(tmp_path)
    found = stored(log)
    assert [offset for offset, _ in found] == list(range(len(found)))
    assert sealed.base_offset <= len(found) == log.end_offset < 20
    assert log.high_watermark <= 5
    manager.abandon()
