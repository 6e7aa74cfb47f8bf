"""A truncation or a swap that fails halfway is finished later: it ends where it would have, and nothing comes back."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.flushing import flush_if_due
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.reader import read
from ixion.broker.log.retention import retain
from ixion.broker.log.view import Bound
from ixion.language.model.errors import KafkaError
from tests.log.faults import FaultyFiles
from tests.log.support import NOW, Box, Clock, QuickFiles, batch, find_by_timestamp, stored

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=50)


def begin(path: Path) -> tuple[Box, FaultyFiles, Log]:
    """Batches of ten records: 0 to 9, 10 to 19 and so on, several to a segment."""
    files = FaultyFiles()
    box = Box(path, CONFIG, files)
    log = box.open()
    for number in range(8):
        log.append_as_leader(batch(*[b"%d" % number] * 10, producer=(1, 0, 10 * number)), number // 3)
    assert len(log.segments) > 2
    log.release_idle()
    log.release_idle()
    return box, files, log


def to_15(log: Log) -> None:
    log.truncate_to(15)


def to_35(log: Log) -> None:
    log.truncate_to(35)


def fully(log: Log) -> None:
    log.truncate_fully(500)


def use(log: Log) -> None:
    """Whatever may look at a log at any time."""
    for work in (
        lambda: read(log, 0, 1000, Bound.END),
        lambda: find_by_timestamp(log, NOW),
        lambda: log.flush(),
        lambda: flush_if_due(log, NOW),
        lambda: retain(log, NOW),
        lambda: log.release_idle(),
    ):
        try:
            work()
        except KafkaError:
            pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("truncate", [to_15, to_35, fully])
def test_a_truncation_ends_where_its_first_attempt_would_have(
    tmp_path: Path, number: int, mended: bool, truncate: Callable[[Log], None]
) -> None:
    _, files, log = begin(tmp_path / "counted")
    files.arm()
    truncate(log)
    count = len(files.disarm())
    end, expected = log.end_offset, stored(log)
    assert end in (10, 30, 500)
    log.abandon()
    for at in range(1, count + 1):
        box, files, log = begin(tmp_path / f"{mended}{at}")
        files.arm(at, number)
        failed = False
        try:
            truncate(log)
        except KafkaError:
            failed = True
        files.disarm()
        if failed:
            use(log)
            assert not log.directory.offline, (at, files.calls[-1], log.directory.reason)
            log.directory.full = False
            was_broken = bool(log.broken)
            if mended:
                assert log.mend() == was_broken
            if not mended or not was_broken:
                truncate(log)
        assert (log.end_offset, stored(log)) == (end, expected), (at, files.calls[-1])
        assert log.append_as_leader(batch(b"more"), 9).first_offset == end
        log.flush()
        log.abandon()
        again = Box(box.path, CONFIG, QuickFiles()).open(log_start=log.log_start)
        assert stored(again) == [*expected, (end, b"more")]
        again.abandon()


def test_a_log_that_is_no_longer_broken_is_not_mended(tmp_path: Path) -> None:
    """Mending uses the end of the log under its lock, not the end that was read before."""
    _, _, log = begin(tmp_path)
    log.broken = "a test says so"
    log.truncate_to(10)
    log.append_as_leader(batch(b"acknowledged"), 9)
    assert not log.mend()
    assert stored(log)[-1] == (10, b"acknowledged")
    log.abandon()


def test_batches_that_replace_verified_ones_are_read(box: Box) -> None:
    log = box.open()
    for number in range(10):
        log.append_as_leader(batch(b"%d" % number * 20), 0)
    log.close()
    log = box.open(clean=True, recovery_point=10)
    before = stored(log)
    log.truncate_to(5)
    for number in range(10):
        log.append_as_leader(batch(b"%d" % number * 33), 1)
    assert stored(log) == before[:5] + [(5 + number, b"%d" % number * 33) for number in range(10)]


class NoRoomToRename(QuickFiles):
    """Once armed, renames from the k-th on fail, `times` of them."""

    def __init__(self) -> None:
        self.at = 0
        self.times = 0
        self.count = 0

    def rename(self, old: str, new: str) -> None:
        if self.at:
            self.count += 1
            if self.at <= self.count < self.at + self.times:
                raise OSError(errno.ENOSPC, "No space left on device", new)
        super().rename(old, new)


COMPACTED = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=400,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01,
    file_delete_delay_ms=0,
)


def filled(path: Path, files: QuickFiles) -> tuple[LogManager, Log]:
    manager = LogManager([str(path)], clock_ms=Clock(), config_of=lambda _: COMPACTED, files=files)
    manager.load()
    log = manager.create("orders", 0)
    if not log.end_offset:
        for number in range(24):
            log.append_as_leader(batch(b"%d" % number * 20, key=b"k%d" % (number % 5)), 0)
        log.raise_high_watermark(log.end_offset)
        log.roll()
    return manager, log


@pytest.mark.parametrize("times", [1, 2, 1000])
@pytest.mark.parametrize("to", [1, 5, 23, 24])
def test_no_old_segment_returns_after_a_swap_that_found_no_room(tmp_path: Path, times: int, to: int) -> None:
    for at in range(1, 100):
        files = NoRoomToRename()
        manager, log = filled(tmp_path / str(at), files)
        live = dict(stored(log))
        files.at, files.times = at, times
        Cleaner(manager, 24 * 1000).clean_dirtiest(NOW)
        is_over = files.count < at
        files.at = 0
        log.directory.full = False
        log.release_idle()
        log.release_idle()
        assert set(stored(log)) <= set(live.items())
        manager.mend()
        assert not log.broken
        assert {value for _, value in stored(log)} >= {b"%d" % number * 20 for number in range(19, 24)}
        log.truncate_to(to)
        for _ in range(3):
            log.append_as_leader(batch(b"in its place", key=b"new"), 1)
        expected = stored(log)
        assert [offset for offset, _ in expected][-3:] == [to, to + 1, to + 2]
        log.release_idle()
        log.release_idle()
        assert stored(log) == expected
        manager.abandon()
        manager, log = filled(tmp_path / str(at), QuickFiles())
        assert stored(log) == expected, at
        assert log.end_offset == to + 3
        manager.abandon()
        if is_over:
            return
    raise AssertionError("a compaction has fewer renames")
