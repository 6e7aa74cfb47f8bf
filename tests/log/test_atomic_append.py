"""An append is in the log or it is not, whichever call to the disk fails, and no offset is given twice."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from tests.log.faults import FaultyFiles
from tests.log.support import NOW, Box, batch, marker, stored

CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=50)
NUMBERS = [errno.EIO, errno.ENOSPC, errno.EMFILE]


def plain(log: Log) -> None:
    log.append_as_leader(batch(b"new" * 10, timestamp=NOW + 50), 3)


def abort(log: Log) -> None:
    log.append_as_leader(marker(2, 0, commit=False), 3, Origin.COORDINATOR)


def large(log: Log) -> None:
    """Does not fit into the active segment."""
    log.append_as_leader(batch(b"n" * 1000, producer=(1, 0, 10), timestamp=NOW + 50), 3)


def follower(log: Log) -> None:
    """Two batches, of which the second ends the transaction, after a hole that needs a new segment."""
    first = batch(b"new", base_offset=log.end_offset + (1 << 31), leader_epoch=4)
    second = bytearray(marker(2, 0, commit=False))
    second[:8] = (log.end_offset + (1 << 31) + 1).to_bytes(8, "big")
    log.append_as_follower(first + bytes(second))


APPENDS = [plain, abort, large, follower]


def begin(path: Path) -> tuple[Box, FaultyFiles, Log]:
    """A log with an open and an aborted transaction, none of whose files is open."""
    files = FaultyFiles()
    box = Box(path, CONFIG, files)
    log = box.open()
    for number in range(10):
        log.append_as_leader(batch(b"old%d" % number * 8, producer=(1, 0, number), timestamp=NOW + number), 2)
    log.append_as_leader(batch(b"gone", producer=(3, 0, 0), transactional=True), 2)
    log.append_as_leader(marker(3, 0, commit=False), 2, Origin.COORDINATOR)
    log.append_as_leader(batch(b"open", producer=(2, 0, 0), transactional=True), 2)
    log.raise_high_watermark(log.end_offset)
    log.release_idle()
    log.release_idle()
    return box, files, log


def in_files(box: Box) -> list[tuple[int, int]]:
    """(first, last) offset of every whole batch in the files, in their order."""
    found = []
    for path in sorted(box.folder.glob("*.log")):
        data = path.read_bytes()
        at = 0
        while at + 61 <= len(data) and (view := BatchView(data, at)).is_complete:
            found.append((int(view.base_offset), int(view.last_offset)))
            at += int(view.size_in_bytes)
    return found


def check_offsets(box: Box) -> None:
    last = -1
    for first, end in in_files(box):
        assert last < first <= end
        last = end


def check_reload(box: Box, log: Log, acknowledged: list[tuple[int, bytes]], aborted: set[int]) -> None:
    """A start after a kill finds every acknowledged record, and every abort that was acknowledged."""
    log.abandon()
    again = Box(box.path, CONFIG).open()
    found = stored(again)
    assert [record for record in found if record in acknowledged] == acknowledged
    offsets = [offset for offset, _ in found]
    assert offsets == sorted(set(offsets))
    listed = {txn.producer_id for segment in again.segments for txn in segment.txn_index.entries()}
    assert aborted <= listed
    assert again.append_as_leader(batch(b"life goes on"), 9).first_offset == again.end_offset - 1
    again.abandon()
    check_offsets(box)


def fails(append: Callable[[Log], None], log: Log) -> bool:
    code = ErrorCode.NONE
    try:
        append(log)
    except KafkaError as error:
        code = error.code
    assert code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
    return code != ErrorCode.NONE


def steps_of(append: Callable[[Log], None], path: Path) -> list[str]:
    _, files, log = begin(path / "counted")
    files.arm()
    append(log)
    steps = files.disarm()
    log.abandon()
    return steps


@pytest.mark.parametrize("append", APPENDS)
def test_the_disk_is_not_touched_after_the_write(append: Callable[[Log], None], tmp_path: Path) -> None:
    assert steps_of(append, tmp_path)[-1] == "write"


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("times", [1, 2, -1])
@pytest.mark.parametrize("append", APPENDS)
def test_any_call_fails(append: Callable[[Log], None], number: int, times: int, tmp_path: Path) -> None:
    count = len(steps_of(append, tmp_path))
    for at in range(1, count + 1):
        box, files, log = begin(tmp_path / str(at))
        acknowledged = stored(log)
        end = log.end_offset
        aborted = {3}
        log.release_idle()
        log.release_idle()
        files.arm(at, number, times)
        failed = fails(append, log)
        files.disarm()
        if failed:
            assert log.end_offset == end
            assert log.directory.offline == (number == errno.EIO)
            assert log.directory.full == (number == errno.ENOSPC)
        elif append in (abort, follower):
            aborted.add(2)
        if not log.directory.offline:
            log.directory.full = False  # as the disk guard finds out
            if failed:
                assert stored(log) == acknowledged
        check_offsets(box)
        for attempt in (plain, abort):
            before = log.end_offset
            if fails(attempt, log):
                assert log.directory.offline or log.broken
                assert log.end_offset == before
            elif attempt is abort:
                aborted.add(2)
        if not log.directory.offline:
            acknowledged = stored(log)
        check_reload(box, log, acknowledged, aborted)


def test_one_descriptor_is_left(tmp_path: Path) -> None:
    """The segment opens, the indexes do not: the append must not grow the file first and fail then."""
    box, files, log = begin(tmp_path)
    expected = stored(log)
    log.release_idle()
    log.release_idle()
    size = log.segments.active.size
    files.arm(2, errno.EMFILE, -1)
    with pytest.raises(KafkaError) as caught:
        plain(log)
    files.disarm()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.directory.offline
    assert not log.broken
    assert max(box.folder.glob("*.log")).stat().st_size == size
    plain(log)
    assert stored(log) == [*expected, (log.end_offset - 1, b"new" * 10)]
    check_offsets(box)


def test_a_log_whose_end_is_unknown_takes_no_appends_until_it_is_recovered(tmp_path: Path) -> None:
    box, files, log = begin(tmp_path)
    acknowledged = stored(log)
    plain(log)  # everything is open
    acknowledged.append((log.end_offset - 1, b"new" * 10))
    end = log.end_offset
    files.arm(1, errno.EMFILE, 2)  # the write, and what would cut it back
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            plain(log)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert files.disarm() == ["write", "truncate"]
    with pytest.raises(KafkaError):
        log.append_as_follower(batch(b"x", base_offset=log.end_offset))
    assert log.end_offset == end
    assert stored(log) == acknowledged
    with pytest.raises(KafkaError):
        log.close()  # so that nobody takes it for clean
    check_reload(box, log, acknowledged, {3})


def test_a_truncation_recovers_a_log_whose_end_is_unknown(tmp_path: Path) -> None:
    box, files, log = begin(tmp_path)
    acknowledged = stored(log)
    plain(log)
    acknowledged.append((log.end_offset - 1, b"new" * 10))
    files.arm(1, errno.EMFILE, 2)
    with pytest.raises(KafkaError):
        plain(log)
    files.disarm()
    assert log.broken
    log.truncate_to(log.end_offset)
    abort(log)
    check_reload(box, log, acknowledged, {2, 3})


def test_an_error_while_idle_files_are_closed_is_reported_to_the_directory(tmp_path: Path) -> None:
    told: list[str] = []
    box, files, log = begin(tmp_path)
    box.directory = DirectoryState(str(tmp_path), lambda _path, reason: told.append(reason))
    log.abandon()
    log = box.open()
    for _ in range(5):
        plain(log)
    log.release_idle()
    files.arm(1, errno.EIO, -1)
    with pytest.raises(KafkaError):
        log.release_idle()
    files.disarm()
    assert len(told) == 1
