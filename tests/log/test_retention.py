"""Retention by time, by size and by log start; deletion in two steps."""

from __future__ import annotations

import errno
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.config import DAY_MS, LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.retention import delete_doomed, retain
from ixion.language.model.errors import KafkaError
from tests.log.faults import FaultyFiles
from tests.log.support import NOW, Box, batch, stored

SIZE = len(batch(b"x" * 100))


def fill(box: Box, batches: int = 10, seen: int = 10) -> Log:
    """Two batches a segment, a batch a second; consumers see the first `seen` of them."""
    box.config = replace(box.config, segment_bytes=SIZE * 2, segment_ms=1 << 40)
    log = box.open()
    for number in range(batches):
        log.append_as_leader(batch(b"x" * 100, timestamp=NOW + number * 1000), 0)
    log.raise_high_watermark(min(seen, batches))
    return log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_old_segments_go_by_their_largest_timestamp(box: Box) -> None:
    box.config = LogConfig(retention_ms=5000)
    log = fill(box)
    assert retain(log, NOW + 6000) == 0
    assert retain(log, NOW + 6001) == 1
    assert bases(log) == [2, 4, 6, 8]
    assert log.log_start == 2
    assert retain(log, NOW + 10_001) == 2
    assert bases(log) == [6, 8]
    assert log.epochs.entries() == [(0, 6)]


def test_a_log_that_is_old_altogether_goes_on_with_an_empty_segment(box: Box) -> None:
    box.config = LogConfig(retention_ms=5000)
    log = fill(box)
    assert retain(log, NOW + DAY_MS) == 5
    assert bases(log) == [10]
    assert (log.log_start, log.end_offset) == (10, 10)
    assert log.append_as_leader(batch(b"a"), 0).first_offset == 10
    log.close()
    assert stored(box.open(clean=True)) == [(10, b"a")]


def test_nothing_beyond_the_high_watermark_goes(box: Box) -> None:
    box.config = LogConfig(retention_ms=5000)
    log = fill(box, seen=5)
    assert retain(log, NOW + DAY_MS) == 2
    assert bases(log) == [4, 6, 8]


def test_a_wrong_future_timestamp_holds_its_segment(box: Box) -> None:
    box.config = LogConfig(retention_ms=5000, message_timestamp_after_max_ms=200 * DAY_MS)
    log = fill(box, 4)
    log.append_as_leader(batch(b"x", timestamp=NOW + 100 * DAY_MS), 0)
    log.raise_high_watermark(5)
    assert retain(log, NOW + DAY_MS) == 2
    assert bases(log) == [4]


def test_the_log_keeps_at_least_its_bytes(box: Box) -> None:
    box.config = LogConfig(retention_bytes=SIZE * 5, retention_ms=-1)
    log = fill(box)
    assert retain(log, NOW) == 2
    assert log.size == SIZE * 6
    assert retain(log, NOW) == 0


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_segments_below_the_log_start_go_whatever_the_policy(box: Box, policy: str) -> None:
    box.config = LogConfig(retention_ms=-1, cleanup_policy=frozenset({policy}))
    log = fill(box)
    log.raise_log_start(5)
    assert retain(log, NOW) == 2
    assert bases(log) == [4, 6, 8]
    assert log.log_start == 5
    assert [offset for offset, _ in stored(log)] == [5, 6, 7, 8, 9]


def test_a_compacted_log_keeps_its_age(box: Box) -> None:
    box.config = LogConfig(retention_ms=5000, retention_bytes=0, cleanup_policy=frozenset({"compact"}))
    assert retain(fill(box), NOW + DAY_MS) == 0


def test_files_go_after_the_delay(box: Box) -> None:
    box.config = LogConfig(retention_ms=5000, file_delete_delay_ms=1000)
    log = fill(box)
    retain(log, NOW + 6001)
    assert sorted(path.name for path in box.folder.glob("*.deleted")) == [
        f"{0:020d}.index.deleted",
        f"{0:020d}.log.deleted",
        f"{0:020d}.timeindex.deleted",
    ]
    assert delete_doomed(log, NOW + 7000) == 0
    assert delete_doomed(log, NOW + 7001) == 1
    assert not list(box.folder.glob("*.deleted"))
    assert not (box.folder / f"{0:020d}.snapshot").exists()


def test_a_file_that_cannot_be_renamed(tmp_path: Path) -> None:
    """Whichever rename fails: what the log has and what a start finds are the same, and the next call finishes."""
    for at in range(1, 12):
        files = FaultyFiles()
        box = Box(tmp_path / str(at), LogConfig(retention_ms=5000, file_delete_delay_ms=0), files)
        log = fill(box, 6)
        log.roll()
        before = stored(log)
        files.arm_kind("rename", at, errno.ENOSPC)
        failed = False
        try:
            retain(log, NOW + 9001)
        except KafkaError:
            failed = True
        files.disarm()
        log.directory.full = False
        assert stored(log) == before[log.log_start :]
        assert log.log_start == log.segments.first.base_offset
        shutil.copytree(box.folder, tmp_path / f"copy{at}" / "orders-0")
        again = Box(tmp_path / f"copy{at}").open()
        assert stored(again) == stored(log)
        again.abandon()
        retain(log, NOW + 9001)
        assert bases(log) == [4, 6]
        delete_doomed(log, NOW + 9001)
        assert not list(box.folder.glob("*.deleted"))
        assert {int(path.name[:20]) for path in box.folder.glob("*.log")} == {4, 6}
        log.abandon()
        if not failed:
            return
    raise AssertionError("retention of two segments has fewer renames")


def test_a_file_that_cannot_be_deleted_is_deleted_later(tmp_path: Path) -> None:
    files = FaultyFiles()
    box = Box(tmp_path, LogConfig(retention_ms=5000, file_delete_delay_ms=0), files)
    log = fill(box)
    assert retain(log, NOW + 9001) == 2
    files.arm_kind("remove", 5, errno.ENOSPC)
    with pytest.raises(KafkaError):
        delete_doomed(log, NOW + 9001)
    files.disarm()
    assert delete_doomed(log, NOW + 9001) == 1
    assert not list(box.folder.glob("*.deleted"))
