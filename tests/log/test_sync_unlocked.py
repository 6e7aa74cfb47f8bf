"""No sync while the event loop may wait for the log's lock: a disk may take a second for one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.compaction import CompactionAbortedError, build_map, compact
from ixion.broker.log.config import LogConfig
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.mover import Mover
from ixion.broker.log.offset_map import OffsetMap
from ixion.broker.log.truncation import SYNCING, Cut
from ixion.language.model.errors import KafkaError
from tests.log.support import NOW, Clock, QuickFiles, batch, stored

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=400,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01,
    file_delete_delay_ms=0,
)


class Watch(QuickFiles):
    """Notes every sync, and whether one of the watched logs was locked meanwhile."""

    def __init__(self) -> None:
        self.logs: list[Log] = []
        self.syncs = 0
        self.locked = 0
        self.is_real = False  # a folder that is gone cannot be synced
        self.meanwhile: Callable[[], None] = lambda: None

    def sync(self, fd: int) -> None:
        self._note()

    def sync_dir(self, path: str) -> None:
        self._note()
        if self.is_real:
            os.listdir(path)

    def _note(self) -> None:
        self.syncs += 1
        self.locked += any(log.lock.locked() for log in self.logs)
        self.meanwhile()


def filled(paths: list[Path], files: Watch, config: LogConfig = CONFIG) -> tuple[LogManager, Log]:
    manager = LogManager([str(path) for path in paths], clock_ms=Clock(), config_of=lambda _: config, files=files)
    manager.load()
    log = manager.create("orders", 0, topic_id=b"0123456789abcdef", directory=manager.directories[0])
    for number in range(40):
        log.append_as_leader(batch(b"%d" % number * 20, key=b"k%d" % (number % 3)), 0)
    log.raise_high_watermark(log.end_offset)
    log.roll()
    files.logs.append(log)
    files.syncs = files.locked = 0
    return manager, log


def test_a_compaction_syncs_without_the_lock(tmp_path: Path) -> None:
    files = Watch()
    manager, log = filled([tmp_path], files)
    assert Cleaner(manager, 24 * 1000).clean_dirtiest(NOW) is not None
    assert files.syncs > 4
    assert files.locked == 0
    assert [value for _, value in stored(log)] == [b"37" * 20, b"38" * 20, b"39" * 20]
    manager.abandon()


@pytest.mark.parametrize("flush_messages", [1, 1 << 40])
def test_a_move_syncs_without_the_lock_of_the_log_in_use(tmp_path: Path, flush_messages: int) -> None:
    files = Watch()
    config = LogConfig(segment_bytes=400, flush_messages=flush_messages)
    manager, log = filled([tmp_path / "a", tmp_path / "b"], files, config)
    log.flush()
    expected = stored(log)
    moved = Mover(manager, "orders", 0, manager.directories[1], on_moved=files.logs.append).run()
    assert files.syncs > 4
    assert files.locked == 0
    assert manager.get("orders", 0) is moved
    assert stored(moved) == expected
    assert moved.recovery_point == moved.end_offset
    manager.abandon()


def to_the_middle(log: Log) -> None:
    log.truncate_to(15)


def within_a_segment(log: Log) -> None:
    log.truncate_to(39)


def below_the_start(log: Log) -> None:
    log.truncate_to(0)


def to_another_offset(log: Log) -> None:
    log.truncate_fully(500)


TRUNCATIONS = [to_the_middle, within_a_segment, below_the_start, to_another_offset]


@pytest.mark.parametrize("truncate", TRUNCATIONS)
def test_a_truncation_syncs_without_the_lock_and_before_the_next_append(
    tmp_path: Path, truncate: Callable[[Log], None]
) -> None:
    files = Watch()
    manager, log = filled([tmp_path / "d"], files)
    log.flush()
    manager.checkpoints.write_all()
    files.syncs = 0
    seen: list[list[tuple[int, bytes]]] = []

    def use() -> None:
        seen.append(stored(log))
        with pytest.raises(KafkaError, match="a truncation is being synced"):
            log.append_as_leader(batch(b"too early"), 1)
        assert not log.mend()

    files.meanwhile = use
    truncate(log)
    assert files.syncs
    assert files.locked == 0
    assert all(records == stored(log) for records in seen)
    end = log.end_offset
    assert log.append_as_leader(batch(b"in its place"), 1).first_offset == end
    # A start after a kill begins recovery where the records are that came in place of the truncated ones.
    shutil.copytree(tmp_path / "d", tmp_path / "copy")
    directory = LogDirectory(str(tmp_path / "copy"), QuickFiles())
    directory.begin()
    assert directory.recovery_points["orders", 0] <= end
    assert directory.high_watermarks["orders", 0] <= end
    directory.release()
    manager.abandon()


def test_a_truncation_that_another_one_overtakes_does_not_admit_appends(tmp_path: Path) -> None:
    files = Watch()
    manager, log = filled([tmp_path], files)
    refused = 0

    def overtake() -> None:
        nonlocal refused
        if files.syncs == 1:
            log.truncate_to(10)
            log.broken = SYNCING  # as if the second one were still at it
            log.unsynced_cut = Cut(None, False)
        elif not log.lock.locked():
            refused += 1

    files.meanwhile = overtake
    log.truncate_to(20)
    assert refused
    with pytest.raises(KafkaError, match="a truncation is being synced"):
        log.append_as_leader(batch(b"too early"), 1)
    manager.abandon()


def test_a_truncation_of_a_log_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    files = Watch()
    manager, log = filled([tmp_path], files)

    def delete() -> None:
        if files.syncs == 1:
            manager.delete("orders", 0)
            manager.doomed_folders.delete_due(NOW + 1)

    files.meanwhile = delete
    files.is_real = True
    with pytest.raises(KafkaError, match="closed"):
        log.truncate_to(20)
    assert not manager.directories[0].state.offline
    manager.abandon()


def test_a_log_is_closed_without_a_sync_under_the_lock(tmp_path: Path) -> None:
    files = Watch()
    manager, log = filled([tmp_path], files)
    log.flush()
    log.append_as_leader(batch(b"last"), 0)
    files.syncs = 0
    log.close()
    assert files.syncs > 3
    assert files.locked == 0
    manager.abandon()


@pytest.mark.parametrize("fully", [False, True])
@pytest.mark.parametrize("step", range(1, 8))
def test_a_truncation_between_the_steps_of_a_swap(tmp_path: Path, fully: bool, step: int) -> None:
    """After a kill at any moment, nothing that was truncated is there again."""
    files = Watch()
    manager, log = filled([tmp_path], files)
    end = log.segments.active.base_offset
    offsets = OffsetMap(24 * 1000)
    build_map(log, 0, end, [], offsets)

    def truncate() -> None:
        if files.syncs == step and not log.lock.locked():
            if fully:
                log.truncate_fully(100)
            else:
                log.truncate_to(5)

    files.meanwhile = truncate
    files.syncs = 0
    # A file that is gone when the compaction comes to it is taken for an abort by the cleaner.
    with log.replacing, suppress(CompactionAbortedError, FileNotFoundError):
        compact(log, end, [], offsets, NOW, log.truncations)
    assert not list(Path(log.folder).glob("*.swap"))
    truncated = bool(log.truncations)
    expected = stored(log)
    manager.abandon()
    again = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: CONFIG, files=QuickFiles())
    again.load()
    found = again.get("orders", 0)
    assert found is not None
    assert stored(found) == expected
    if truncated and fully:
        assert expected == []
    again.abandon()
