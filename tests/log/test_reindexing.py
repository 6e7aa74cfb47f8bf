"""A damaged index is rebuilt while the log is in use, without the log's lock, from what the segment holds."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.mover import Mover
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.retention import retain
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.faults import FaultyFiles
from tests.log.support import NOW, Clock, batch, find_by_timestamp, marker, stored

CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=100, retention_ms=1 << 40)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xff" * len(path.read_bytes()))


DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    *((kind, damage) for kind in ("index", "timeindex") for damage in (cut_short, overwrite, Path.unlink)),
    *(("txnindex", damage) for damage in (cut_short, overwrite)),  # one that is gone means that nothing was aborted
]


def start(path: Path, files: FaultyFiles | None = None) -> tuple[LogManager, Log]:
    manager = LogManager([str(path)], clock_ms=Clock(), config_of=lambda _: CONFIG, files=files or FaultyFiles())
    manager.load()
    return manager, manager.create("orders", 0)


def filled(path: Path, files: FaultyFiles | None = None) -> tuple[LogManager, Log]:
    """Segments with aborted transactions in each, after a clean start."""
    manager, log = start(path, files)
    for number in range(30):
        log.append_as_leader(batch(b"%d" % number * 20, timestamp=NOW + number), 0)
        if number % 5 == 0:
            log.append_as_leader(batch(b"gone", producer=(number, 0, 0), transactional=True), 0)
            log.append_as_leader(marker(number, 0, commit=False), 0, Origin.COORDINATOR)
    log.raise_high_watermark(log.end_offset)
    assert len(log.segments) > 2
    manager.close()
    return start(path, files)


def indexes(log: Log) -> list[tuple[object, ...]]:
    return [
        (segment.index.entries(), segment.time_index.entries(), segment.txn_index.entries(), segment.max_timestamp)
        for segment in log.segments
    ]


def later() -> list[tuple[bytes, Origin]]:
    """What is still to be appended."""
    return [
        (batch(b"more", timestamp=NOW + 100), Origin.CLIENT),
        (batch(b"open", producer=(77, 0, 0), transactional=True), Origin.CLIENT),
        (marker(77, 0, commit=False), Origin.COORDINATOR),
    ]


def use(log: Log, appends: list[tuple[bytes, Origin]]) -> list[ErrorCode]:
    """All that meets an index. The codes of what failed."""

    def append_all() -> None:
        while appends:
            log.append_as_leader(appends[0][0], 0, appends[0][1])
            appends.pop(0)

    codes = []
    for work in (
        lambda: [read(log, offset, 1, Bound.VISIBLE_STABLE) for offset in range(log.end_offset)],
        lambda: [find_by_timestamp(log, NOW + number) for number in range(30)],
        append_all,
        lambda: retain(log, NOW),
    ):
        try:
            work()
        except KafkaError as error:
            codes.append(error.code)
    return codes


@pytest.mark.parametrize("which", [0, -1])
@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
def test_a_damaged_index_is_rebuilt(
    tmp_path: Path, kind: str, damage: Callable[[Path], None], which: int, caplog: pytest.LogCaptureFixture
) -> None:
    manager, log = filled(tmp_path / "sound")
    assert use(log, later()) == []
    expected, known = stored(log), indexes(log)
    manager.abandon()
    manager, log = filled(tmp_path / "damaged")
    damage(sorted(Path(log.folder).glob(f"*.{kind}"))[which])
    caplog.set_level(logging.WARNING)
    appends = later()
    codes = use(log, appends)
    assert set(codes) <= {ErrorCode.KAFKA_STORAGE_ERROR}
    assert caplog.records == []
    while log.damaged_indexes:
        manager.mend()
        assert len(caplog.records) == 1, "one line for one segment"
        caplog.clear()
        use(log, appends)
    assert not log.directory.offline
    assert not log.broken
    assert stored(log) == expected
    assert indexes(log)[which][2:] == known[which][2:]
    assert not list(Path(log.folder).glob("*.tmp"))
    log.flush()
    manager.checkpoints.write_all()
    manager.close()
    manager, log = start(tmp_path / "damaged")
    assert stored(log) == expected
    assert indexes(log)[which][2] == known[which][2]
    manager.abandon()


class Meanwhile(FaultyFiles):
    """Appends to the log while the first file is synced, and notes whether the log was locked at a sync."""

    def __init__(self) -> None:
        super().__init__()
        self.log: Log | None = None
        self.locked: list[bool] = []

    def sync(self, fd: int) -> None:
        log = self.log
        if log is not None:
            self.locked.append(log.lock.locked())
            if len(self.locked) == 1:
                log.append_as_leader(batch(b"meanwhile", timestamp=NOW + 200), 0)


def test_the_segment_is_read_without_the_lock_and_may_grow_meanwhile(tmp_path: Path) -> None:
    files = Meanwhile()
    manager, log = filled(tmp_path, files)
    active = log.segments.active
    log.note_damage(active.index.file.damaged("a test says so"))
    files.log = log
    log.mend()
    assert len(files.locked) == 2
    assert not any(files.locked)
    assert log.segments.active is active
    assert active.max_timestamp == NOW + 200
    assert stored(log)[-1] == (log.end_offset - 1, b"meanwhile")
    log.flush()
    expected = indexes(log)
    log.release_idle()
    log.release_idle()
    assert indexes(log) == expected
    manager.abandon()


def test_a_truncation_rebuilds_a_damaged_index_first(tmp_path: Path) -> None:
    manager, log = filled(tmp_path)
    cut_short(min(Path(log.folder).glob("*.index")))
    assert log.truncate_to(3)
    assert [offset for offset, _ in stored(log)] == [0, 1]
    assert log.append_as_leader(batch(b"more"), 0).first_offset == 3
    manager.abandon()


def test_a_compaction_waits_for_a_damaged_index(tmp_path: Path) -> None:
    config = LogConfig(
        segment_bytes=1500,
        index_interval_bytes=100,
        cleanup_policy=frozenset({"compact"}),
        min_cleanable_dirty_ratio=0.0,
        min_compaction_lag_ms=1,
    )
    manager, log = filled(tmp_path)
    log.reconfigure(config)
    cut_short(min(Path(log.folder).glob("*.timeindex")))
    cleaner = Cleaner(manager, 1 << 16)
    assert cleaner.clean_dirtiest(NOW + 1000) is None
    assert cleaner.uncleanable == {}
    manager.mend()
    assert cleaner.clean_dirtiest(NOW + 1000) is not None
    manager.abandon()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_fault_while_an_index_is_rebuilt(tmp_path: Path, number: int) -> None:
    """The next attempt finishes it."""
    for at in range(1, 100):
        files = FaultyFiles()
        manager, log = filled(tmp_path / str(at), files)
        expected = [(offset, value) for offset, value in stored(log)]
        log.release_idle()
        log.release_idle()
        cut_short(max(Path(log.folder).glob("*.txnindex")))
        log.append_as_leader(batch(b"open", producer=(77, 0, 0), transactional=True), 0)
        with pytest.raises(KafkaError):
            log.append_as_leader(marker(77, 0, commit=False), 0, Origin.COORDINATOR)
        files.arm(at, number)
        manager.mend()
        is_over = len(files.disarm()) < at
        log.directory.full = False
        manager.mend()
        assert stored(log)[: len(expected)] == expected
        log.append_as_leader(marker(77, 0, commit=False), 0, Origin.COORDINATOR)
        assert {each.producer_id for each in log.segments.active.txn_index.entries()} >= {25, 77}
        assert not log.directory.offline
        manager.abandon()
        if is_over:
            return
    raise AssertionError("it takes fewer calls")


def test_all_damaged_indexes_of_a_log_are_rebuilt_together(tmp_path: Path) -> None:
    manager, log = filled(tmp_path)
    for path in Path(log.folder).glob("*.timeindex"):
        cut_short(path)
    with pytest.raises(KafkaError):
        find_by_timestamp(log, NOW)
    assert len(log.damaged_indexes) == 1
    manager.mend()
    assert [find_by_timestamp(log, NOW + number) is None for number in (0, 15, 29)] == [False, False, False]
    assert log.damaged_indexes == {}
    manager.abandon()


def test_a_move_rebuilds_a_damaged_index_that_it_meets(tmp_path: Path) -> None:
    manager, log = filled(tmp_path / "a")
    expected = stored(log)
    manager.close()
    manager = LogManager(
        [str(tmp_path / "a"), str(tmp_path / "b")],
        clock_ms=Clock(),
        config_of=lambda _: CONFIG,
        files=FaultyFiles(),
    )
    manager.load()
    log = manager.logs["orders", 0]
    for path in Path(log.folder).glob("*.index"):
        overwrite(path)
    moved = Mover(manager, "orders", 0, manager.directories[1]).run()
    assert stored(moved) == expected
    manager.abandon()
