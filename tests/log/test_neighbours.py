"""One log that fails does not keep the others from being looked after, compacted, or remembered by a checkpoint."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ixion.broker.log.checkpoint import CLEANER_OFFSETS, LOG_STARTS, Offsets, read_offsets
from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from tests.log.support import NOW, Clock, QuickFiles, batch

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact", "delete"}),
    segment_bytes=400,
    index_interval_bytes=50,
    min_cleanable_dirty_ratio=0.01,
    retention_ms=1000,
)


class Refusing(QuickFiles):
    """Opens and replaces no file whose path has `part` in it."""

    def __init__(self) -> None:
        self.part = ""
        self.code = errno.EMFILE

    def _check(self, path: str) -> None:
        if self.part and self.part in path:
            raise OSError(self.code, os.strerror(self.code), path)

    def list_dir(self, path: str) -> list[os.DirEntry[str]]:
        self._check(path)
        return super().list_dir(path)

    def replace_content(self, path: str, content: bytes, sync: bool) -> None:
        self._check(path)
        super().replace_content(path, content, sync)


def start(path: Path, files: Refusing) -> LogManager:
    manager = LogManager([str(path)], clock_ms=Clock(), config_of=lambda _: CONFIG, files=files)
    manager.load()
    return manager


def filled(path: Path, files: Refusing, timestamp: int = NOW) -> LogManager:
    manager = start(path, files)
    for partition in range(3):
        log = manager.create("orders", partition)
        for number in range(20):
            data = batch(b"%d" % number * 10, key=b"k%d" % (number % 3), timestamp=timestamp)
            log.append_as_leader(data, 0)
        log.raise_high_watermark(log.end_offset)
    manager.close()
    return start(path, files)


def damage_times(log: Log) -> None:
    for segment in log.segments:
        os.truncate(segment.time_index.file.path, 3)


def test_retention_goes_on_behind_a_damaged_log(tmp_path: Path) -> None:
    manager = filled(tmp_path, Refusing(), NOW - 5000)
    for log in manager.logs.values():
        log.raise_high_watermark(log.end_offset)
    first = manager.logs["orders", 0]
    damage_times(first)
    manager.look_after()
    assert [log.log_start for log in manager.logs.values()] == [0, 20, 20]
    manager.abandon()


def test_compaction_goes_on_behind_a_damaged_log(tmp_path: Path) -> None:
    manager = filled(tmp_path, Refusing())
    for log in manager.logs.values():
        log.raise_high_watermark(log.end_offset)
    damage_times(manager.logs["orders", 0])
    cleaner = Cleaner(manager, 24 * 1000)
    assert cleaner.clean_dirtiest(NOW) is not None
    assert cleaner.clean_dirtiest(NOW) is not None
    assert cleaner.clean_dirtiest(NOW) is None
    assert cleaner.uncleanable == {}
    manager.mend()
    assert cleaner.clean_dirtiest(NOW) is not None
    manager.abandon()


def test_a_log_whose_compaction_found_no_room_is_compacted_when_there_is(tmp_path: Path) -> None:
    files = Refusing()
    manager = filled(tmp_path, files)
    for log in manager.logs.values():
        log.raise_high_watermark(log.end_offset)
    cleaner = Cleaner(manager, 24 * 1000)
    files.part, files.code = CLEANER_OFFSETS, errno.ENOSPC
    assert cleaner.clean_dirtiest(NOW) is None
    assert cleaner.uncleanable == {}
    files.part = ""
    manager.directories[0].state.full = False
    for log in manager.logs.values():
        log.append_as_leader(batch(b"x" * 300), 0)
        log.raise_high_watermark(log.end_offset)
    assert cleaner.clean_dirtiest(NOW) is not None
    manager.abandon()


@pytest.mark.parametrize("late", [0, 1, 2])
def test_a_log_that_is_loaded_while_a_checkpoint_is_written_keeps_its_entry(tmp_path: Path, late: int) -> None:
    files = Refusing()
    manager = filled(tmp_path, files)
    for log in manager.logs.values():
        log.raise_high_watermark(log.end_offset)
        log.raise_log_start(7)
    manager.checkpoints.write_log_starts()
    path = str(tmp_path / LOG_STARTS)
    expected = read_offsets(files, path)
    assert len(expected) == 3
    manager.abandon()
    files.part, files.code = f"orders-{late}", errno.EMFILE
    manager = start(tmp_path, files)
    assert list(manager.unreadable) == [("orders", late)]
    files.part = ""
    directory = manager.directories[0]
    original = directory.write_checkpoint

    def overtaken(name: str, offsets: Offsets, missing: set[tuple[str, int]]) -> None:
        manager.load_missing()
        original(name, offsets, missing)

    directory.write_checkpoint = overtaken  # type: ignore[method-assign]
    manager.checkpoints.write_log_starts()
    assert manager.unreadable == {}
    assert read_offsets(files, path) == expected
    manager.abandon()
