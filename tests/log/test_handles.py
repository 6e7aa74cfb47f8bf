"""A file is closed only when its last user is done, also if another thread closes, truncates or deletes it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Files
from ixion.broker.log.handle import FileSlice, Handle
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.reader import read_slice
from ixion.broker.log.retention import delete_doomed, retain
from ixion.broker.log.scan import Scan
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.support import NOW, Clock, QuickFiles, batch, stored

CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=400,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01,
    file_delete_delay_ms=0,
)


class Meddler(QuickFiles):
    """Lets the test do something at a step of the log, as another thread might."""

    def __init__(self) -> None:
        self.on_open: Callable[[str], None] = lambda _: None
        self.on_read: Callable[[], None] = lambda: None
        self.on_sync: Callable[[], None] = lambda: None
        self.on_remove: Callable[[], None] = lambda: None
        self.on_close: Callable[[int], None] = lambda _: None

    def open_existing(self, path: str) -> int:
        self.on_open(path)
        return super().open_existing(path)

    def read(self, fd: int, size: int, position: int) -> bytes:
        self.on_read()
        return super().read(fd, size, position)

    def sync(self, fd: int) -> None:
        self.on_sync()
        os.fstat(fd)  # what a sync of a closed file would say

    def remove(self, path: str) -> None:
        self.on_remove()
        super().remove(path)

    def close(self, fd: int) -> None:
        super().close(fd)
        self.on_close(fd)


class Stage:
    def __init__(self, path: Path) -> None:
        self.files = Meddler()
        self.config = CONFIG
        self.manager = LogManager([str(path)], clock_ms=Clock(), config_of=lambda _: self.config, files=self.files)
        self.manager.load()
        self.log: Log = self.manager.create("orders", 0)
        self.cleaner = Cleaner(self.manager, 24 * 1000)
        for number in range(40):
            self.log.append_as_leader(batch(b"%d" % number * 20, key=b"k%d" % (number % 3)), 0)
        self.log.raise_high_watermark(self.log.end_offset)
        self.log.roll()

    def close_idle_files(self) -> None:
        self.log.release_idle()
        self.log.release_idle()

    def unless_locked(self, work: Callable[[], object]) -> Callable[[], None]:
        """What another thread could do now, which is nothing while the log is locked; and not again within itself."""
        busy = False

        def meddle() -> None:
            nonlocal busy
            if not busy and not self.log.lock.locked():
                busy = True
                work()
                busy = False

        return meddle


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def values(log: Log) -> list[bytes]:
    return [value for _, value in stored(log)]


LAST = [b"37" * 20, b"38" * 20, b"39" * 20]


def test_a_segment_says_that_it_has_no_file_before_the_file_is_closed(stage: Stage) -> None:
    """Closing lets other threads run; one that found the handle then would read a closed file, or another one."""
    segments = list(stage.log.segments)
    said: list[bool] = []
    stage.files.on_close = lambda fd: said.extend(segment.is_open and segment.handle.fd == fd for segment in segments)
    for segment in segments:
        segment.close()
    assert said
    assert not any(said)


def test_a_compaction_opens_files_under_the_lock_of_the_log(stage: Stage) -> None:
    stage.close_idle_files()
    opened: list[tuple[str, bool]] = []
    stage.files.on_open = lambda path: opened.append((path, stage.log.lock.locked()))
    assert stage.cleaner.clean_dirtiest(NOW) is not None
    sources = {locked for path, locked in opened if path.endswith(".log")}
    assert sources == {True}


def test_idle_files_are_closed_under_a_compaction(stage: Stage) -> None:
    closed = 0

    def count(_fd: int) -> None:
        nonlocal closed
        closed += 1

    stage.files.on_read = stage.unless_locked(stage.close_idle_files)
    stage.files.on_close = count
    assert stage.cleaner.clean_dirtiest(NOW) is not None
    assert closed > len(stage.log.segments)
    assert not stage.log.directory.offline
    assert values(stage.log) == LAST


def test_a_log_is_deleted_under_its_compaction(stage: Stage) -> None:
    stage.files.on_read = stage.unless_locked(lambda: stage.manager.delete("orders", 0))
    assert stage.cleaner.clean_dirtiest(NOW) is None
    assert not stage.log.directory.offline
    assert not stage.cleaner.uncleanable
    # The topic may be recreated at once.
    again = stage.manager.create("orders", 0)
    assert again.end_offset == 0
    assert not list(Path(again.folder).glob("*.cleaned"))


@pytest.mark.parametrize("to", [0, 1, 20, 39])
@pytest.mark.parametrize("step", [0, 1, 5, 10, 30, 50])
def test_a_log_is_truncated_under_its_compaction(stage: Stage, to: int, step: int) -> None:
    """What was cut off does not come back, and what replaces it is not lost."""
    kept = stored(stage.log)[:to]
    steps = 0

    def truncate() -> None:
        nonlocal steps
        steps += 1
        if steps == step + 1:
            stage.log.truncate_to(to)
            stage.log.append_as_leader(batch(b"new", key=b"k0"), 0)
            stage.log.raise_high_watermark(stage.log.end_offset)

    stage.files.on_read = stage.unless_locked(truncate)
    stage.cleaner.clean_dirtiest(NOW)
    stage.files.on_read = lambda: None
    assert steps > step
    assert not stage.log.directory.offline
    assert not stage.cleaner.uncleanable
    assert stored(stage.log) == [*kept, (to, b"new")]
    # Now that it is left in peace, it is compacted after all.
    stage.log.roll()
    assert stage.cleaner.clean_dirtiest(NOW) is not None
    latest = {offset % 3: offset for offset, _ in kept}
    latest[0] = to
    assert [offset for offset, _ in stored(stage.log)] == sorted(latest.values())


def test_a_log_is_truncated_between_the_choice_and_the_compaction(stage: Stage) -> None:
    due = stage.cleaner.due

    def due_and_truncate(now_ms: int) -> object:
        parts = due(now_ms)
        stage.log.truncate_to(20)
        return parts

    stage.cleaner.due = due_and_truncate  # type: ignore[assignment, method-assign]
    assert stage.cleaner.clean_dirtiest(NOW) is None
    stage.log.append_as_leader(batch(b"new"), 0)
    assert [offset for offset, _ in stored(stage.log)] == list(range(21))


def test_a_log_has_an_active_segment_at_every_moment(stage: Stage) -> None:
    """Some look at it without the lock, and deleting files lets other threads run."""
    found: list[int] = []
    stage.files.on_remove = lambda: found.append(len(stage.log.segments))
    stage.log.truncate_fully(100)
    assert [segment.base_offset for segment in stage.log.segments] == [100]
    far = 100 + (1 << 31)  # beyond the reach of the segment, which is empty
    stage.log.append_as_follower(batch(b"x", base_offset=far))
    assert [segment.base_offset for segment in stage.log.segments] == [far]
    assert len(found) > 8
    assert min(found) > 0


def test_a_deleted_log_takes_and_gives_nothing_more(stage: Stage) -> None:
    """Its folder may be gone, or there may be another log of this name."""
    stage.manager.delete("orders", 0)
    for use in (
        lambda: stage.log.append_as_leader(batch(b"lost"), 0),
        lambda: stage.log.append_as_follower(batch(b"lost", base_offset=40)),
        lambda: read_slice(stage.log, 0, 100, Bound.END),
    ):
        with pytest.raises(KafkaError) as caught:
            use()
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not stage.log.directory.offline


def test_a_disk_that_fails_while_the_cleaner_looks_for_work(stage: Stage) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    stage.files.on_read = fail
    assert stage.cleaner.clean_dirtiest(NOW) is None
    assert stage.log.directory.offline


def everything_idle(stage: Stage) -> None:
    stage.close_idle_files()


def truncated(stage: Stage) -> None:
    stage.log.truncate_to(5)


def truncated_fully(stage: Stage) -> None:
    stage.log.truncate_fully(100)


def compacted(stage: Stage) -> None:
    stage.cleaner.clean_dirtiest(NOW)
    delete_doomed(stage.log, NOW)


def retained(stage: Stage) -> None:
    stage.config = LogConfig(segment_bytes=400, retention_bytes=500, file_delete_delay_ms=0)
    stage.manager.reconfigure("orders")
    retain(stage.log, NOW)
    delete_doomed(stage.log, NOW)


def deleted(stage: Stage) -> None:
    stage.manager.delete("orders", 0)
    stage.manager.doomed_folders.delete_due(NOW + 1_000_000)


MEANWHILE = [everything_idle, truncated, truncated_fully, compacted, retained, deleted]


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("step", range(4))
def test_a_flush_while_something_else_happens(stage: Stage, meanwhile: Callable[[Stage], None], step: int) -> None:
    steps = 0

    def once() -> None:
        nonlocal steps
        steps += 1
        if steps == step + 1:
            meanwhile(stage)

    stage.files.on_sync = stage.unless_locked(once)
    stage.log.flush()
    assert steps > step
    assert not stage.log.directory.offline
    names = {name.partition(".")[0] for name in os.listdir(stage.log.folder)} if meanwhile is not deleted else set()
    bases = {f"{segment.base_offset:020d}" for segment in stage.log.segments}
    assert {name for name in names if name.isdigit()} <= bases | {f"{stage.log.end_offset:020d}"}
    if meanwhile is not deleted:
        assert stage.log.recovery_point == stage.log.end_offset


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_a_slice_outlives_its_segment(stage: Stage, meanwhile: Callable[[Stage], None]) -> None:
    piece = read_slice(stage.log, 20, 10_000, Bound.END, at_once=0).records
    assert isinstance(piece, FileSlice)
    expected = piece.read(0, piece.size)
    meanwhile(stage)
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(50)]  # that would get the number of a closed file
    try:
        with suppress(KafkaError):  # cut off, at most
            assert piece.read(0, piece.size) == expected
        assert os.readlink(f"/proc/self/fd/{piece.handle.fd}") != os.devnull
    finally:
        for fd in others:
            os.close(fd)


def test_a_scan_keeps_its_file(tmp_path: Path) -> None:
    files = Files()
    path = tmp_path / "file.log"
    path.write_bytes(batch(b"value") * 3)
    scan = Scan(Handle(files, files.open_to_read(str(path))), 0, path.stat().st_size)
    found = 0
    while scan.step():
        found += 1
    assert found == 3
