"""Logs that are not loaded: a start that is stopped halfway, a log that cannot be opened, a folder that is in the way.

The rule: a directory is marked clean only if every log in it was loaded, recovered and closed in this run, and the
checkpoints keep what they say of a log that was not loaded.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ixion.broker.log import checkpoint
from ixion.broker.log.clean_shutdown import FILE_NAME as MARKER
from ixion.broker.log.config import LogConfig
from ixion.broker.log.disk_guard import DiskGuard
from ixion.broker.log.files import Part
from ixion.broker.log.manager import LogManager
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.support import NOW, Clock, QuickFiles, batch, stored

CHECKPOINTS = (checkpoint.RECOVERY_POINTS, checkpoint.HIGH_WATERMARKS, checkpoint.LOG_STARTS)


class Watched(QuickFiles):
    """Calls `before` with the name of each call and the path it is about."""

    def __init__(self) -> None:
        self.before: Callable[[str, str], None] = lambda _what, _path: None
        self.calls: list[tuple[str, str]] = []

    def _see(self, what: str, path: str) -> None:
        self.calls.append((what, path))
        self.before(what, path)

    def open(self, path: str) -> int:
        self._see("open", path)
        return super().open(path)

    def open_existing(self, path: str) -> int:
        self._see("open", path)
        return super().open_existing(path)

    def open_to_read(self, path: str) -> int:
        self._see("open", path)
        return super().open_to_read(path)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        self._see("write", os.readlink(f"/proc/self/fd/{fd}"))
        super().write(fd, position, parts)

    def sync_dir(self, path: str) -> None:
        self._see("sync_dir", path)

    def rename(self, old: str, new: str) -> None:
        self._see("rename", old)
        super().rename(old, new)

    def make_dir(self, path: str) -> None:
        self._see("make_dir", path)
        super().make_dir(path)

    def fail(self, what: str, part: str, code: int) -> None:
        """From now on, calls of this kind on paths with this part in them fail."""

        def before(call: str, path: str) -> None:
            if call == what and part in path:
                raise OSError(code, os.strerror(code), path)

        self.before = before


@dataclass(slots=True)
class Stage:
    path: Path
    files: Watched = field(default_factory=Watched)
    config_of: Callable[[str], LogConfig] = lambda _topic: LogConfig()

    def manager(self, load: bool = True, threads: int = 1) -> LogManager:
        manager = LogManager(
            [str(self.path)],
            clock_ms=Clock(),
            config_of=self.config_of,
            files=self.files,
            recovery_threads=threads,
        )
        if load:
            manager.load()
        return manager

    @property
    def is_clean(self) -> bool:
        return (self.path / MARKER).exists()

    def offsets(self) -> dict[str, dict[tuple[str, int], int]]:
        return {name: checkpoint.read_offsets(self.files, str(self.path / name)) for name in CHECKPOINTS}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "d")


def fill(stage: Stage, *, clean: bool) -> None:
    """Four partitions, each with a log start, a high watermark and a recovery point of its own."""
    manager = stage.manager()
    for number in range(4):
        log = manager.create("orders", number)
        for _ in range(number + 3):
            log.append_as_leader(batch(b"%d" % number), 0)
        log.flush()
        log.raise_high_watermark(number + 2)
        log.raise_log_start(number + 1)
        log.append_as_leader(batch(b"last"), 0)
    manager.checkpoints.write_all()
    if clean:
        manager.close()
    else:
        manager.abandon()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("at", range(4))
def test_a_stop_while_logs_are_loaded_leaves_the_directory_unclean(
    stage: Stage, at: int, threads: int, clean: bool
) -> None:
    fill(stage, clean=clean)
    before = stage.offsets()
    manager = stage.manager(load=False, threads=threads)
    closing = threading.Thread(target=manager.close)
    opening = threading.Event()

    def hold(what: str, path: str) -> None:
        if what == "open" and f"orders-{at}" in path and not opening.is_set():
            opening.set()
            assert manager._loading._stopped.wait(30)

    stage.files.before = hold
    loading = threading.Thread(target=manager.load)
    loading.start()
    assert opening.wait(30)
    closing.start()
    closing.join(30)
    loading.join(30)
    stage.files.before = lambda _what, _path: None
    unloaded = manager.directories[0].unloaded
    assert len(unloaded) == 3 - at or threads > 1
    assert stage.is_clean is not bool(unloaded)
    if unloaded:
        after = stage.offsets()
        for name in CHECKPOINTS:
            assert after[name].keys() == before[name].keys()
            assert all(after[name][key] >= before[name][key] for key in before[name])
    again = stage.manager()
    for number in range(4):
        log = again.logs["orders", number]
        assert (log.log_start, log.end_offset) == (number + 1, number + 4)
        assert log.high_watermark == number + 2
        assert [value for _, value in stored(log)] == [b"%d" % number] * 2 + [b"last"]
    again.abandon()


def test_a_stop_before_loading_changes_nothing(stage: Stage) -> None:
    fill(stage, clean=True)
    before = stage.offsets()
    manager = stage.manager(load=False)
    manager.close()
    assert stage.is_clean
    assert stage.offsets() == before
    manager = stage.manager(load=False)
    manager.interrupt()
    manager.load()
    manager.close()
    assert stage.is_clean
    assert stage.offsets() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_an_exception_while_logs_are_loaded_leaves_the_directory_unclean(stage: Stage, threads: int) -> None:
    fill(stage, clean=False)
    before = stage.offsets()

    def no_settings(_topic: str) -> LogConfig:
        raise RuntimeError("the metadata is gone")

    stage.config_of = no_settings
    manager = stage.manager(load=False, threads=threads)
    with pytest.raises(RuntimeError):
        manager.load()
    manager.close()
    assert not stage.is_clean
    assert stage.offsets() == before


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOSPC])
def test_a_log_that_cannot_be_opened_now_is_named_and_opened_later(stage: Stage, code: int) -> None:
    fill(stage, clean=False)
    before = stage.offsets()
    stage.files.fail("open", "orders-2", code)
    manager = stage.manager()
    state = manager.directories[0].state
    assert not state.offline
    assert sorted(manager.logs) == [("orders", 0), ("orders", 1), ("orders", 3)]
    assert os.strerror(code) in manager.unreadable["orders", 2]
    with pytest.raises(KafkaError) as caught:
        manager.create("orders", 2)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    manager.checkpoints.write_all()
    assert stage.offsets()[checkpoint.LOG_STARTS] == before[checkpoint.LOG_STARTS]
    assert manager.load_missing() == []
    stage.files.before = lambda _what, _path: None
    DiskGuard(1, lambda _: (100, 1 << 40)).check(state)
    assert manager.load_missing() == [("orders", 2)]
    assert manager.load_missing() == []
    assert manager.unreadable == {}
    log = manager.logs["orders", 2]
    assert (log.log_start, log.high_watermark, log.end_offset) == (3, 4, 6)
    manager.close()
    assert stage.is_clean


def test_a_log_that_cannot_be_opened_is_deleted_with_its_partition(stage: Stage) -> None:
    """A broker on a full disk said that it had deleted a moved replica, and opened it when there was room again."""
    fill(stage, clean=False)
    stage.files.fail("open", "orders-2", errno.ENOSPC)
    manager = stage.manager()
    manager.delete("orders", 2)
    stage.files.before = lambda _what, _path: None
    DiskGuard(1, lambda _: (100, 1 << 40)).check(manager.directories[0].state)
    assert manager.load_missing() == []
    assert ("orders", 2) not in manager.logs
    assert manager.unreadable == {}
    new = manager.create("orders", 2, b"j" * 16)
    assert (stored(new), new.log_start, new.high_watermark) == ([], 0, 0)
    manager.doomed_folders.delete_due(NOW + 100_000)
    assert not list(stage.path.glob("orders-2.*"))
    manager.close()
    assert stage.is_clean
    again = stage.manager()
    assert len(again.logs) == 4
    again.abandon()


def test_a_deletion_that_cannot_rename_a_closed_log_says_so(stage: Stage) -> None:
    fill(stage, clean=False)
    stage.files.fail("open", "orders-2", errno.ENOSPC)
    manager = stage.manager()
    stage.files.fail("rename", "orders-2", errno.ENOSPC)
    with pytest.raises(KafkaError):
        manager.delete("orders", 2)
    assert ("orders", 2) in manager.unreadable
    manager.abandon()


def test_a_log_that_stays_closed_keeps_the_directory_unclean(stage: Stage) -> None:
    fill(stage, clean=True)
    stage.files.fail("open", "orders-2", errno.EMFILE)
    manager = stage.manager()
    manager.close()
    assert not stage.is_clean
    stage.files.before = lambda _what, _path: None
    manager = stage.manager()
    assert len(manager.logs) == 4
    manager.close()
    assert stage.is_clean


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC])
@pytest.mark.parametrize("part", [".snapshot", ".timeindex", "leader-epoch"])
def test_a_log_that_cannot_be_closed_leaves_the_directory_unclean(stage: Stage, part: str, code: int) -> None:
    manager = stage.manager()
    for number in range(2):
        manager.create("orders", number).append_as_leader(batch(b"a", producer=(1, 0, 0)), 3)
    stage.files.fail("open", f"orders-1/{part}" if part.startswith("leader") else part, code)
    manager.close()
    stage.files.before = lambda _what, _path: None
    assert not stage.is_clean
    again = stage.manager()
    assert [stored(again.logs["orders", number]) for number in range(2)] == [[(0, b"a")]] * 2
    again.abandon()


def test_a_second_close_does_not_touch_files_that_another_broker_uses(stage: Stage) -> None:
    first = stage.manager()
    first.create("orders", 0)
    first.close()
    second = stage.manager()
    first.close()
    assert not stage.is_clean
    second.abandon()


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
def test_a_directory_that_cannot_be_listed_is_offline_and_unchanged(
    stage: Stage, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stage, clean=True)
    before = stage.offsets()
    manager = stage.manager(load=False)

    def scandir(path: str) -> None:
        raise OSError(code, os.strerror(code), path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        manager.load()
    assert manager.directories[0].state.offline
    with pytest.raises(KafkaError):
        manager.create("orders", 0)
    manager.close()
    assert stage.is_clean
    assert stage.offsets() == before


# New folders.


def test_the_name_of_a_new_folder_is_on_the_disk_when_it_can_be_used(stage: Stage) -> None:
    manager = stage.manager()
    assert stage.files.calls[:2] == [("make_dir", str(stage.path)), ("sync_dir", str(stage.path.parent))]
    stage.files.calls.clear()
    manager.create("orders", 0, b"i" * 16)
    calls = stage.files.calls
    assert calls.index(("make_dir", str(stage.path / "orders-0"))) < calls.index(("sync_dir", str(stage.path)))
    calls.clear()
    manager.create("orders", 0, b"i" * 16)
    assert ("sync_dir", str(stage.path)) not in calls, "once is enough"
    manager.abandon()


def test_a_name_that_could_not_be_synced_is_synced_by_the_next_attempt(stage: Stage) -> None:
    manager = stage.manager()
    stage.files.fail("sync_dir", str(stage.path), errno.EMFILE)
    with pytest.raises(KafkaError):
        manager.create("orders", 0)
    stage.files.before = lambda _what, _path: None
    stage.files.calls.clear()
    manager.create("orders", 0)
    assert ("sync_dir", str(stage.path)) in stage.files.calls
    manager.abandon()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC])
def test_a_folder_that_a_deletion_could_not_rename_is_not_the_new_topics(stage: Stage, code: int) -> None:
    manager = stage.manager()
    manager.create("orders", 0, b"i" * 16).append_as_leader(batch(b"old"), 0)
    stage.files.fail("rename", "orders-0", code)
    with pytest.raises(KafkaError):
        manager.delete("orders", 0)
    stage.files.before = lambda _what, _path: None
    DiskGuard(1, lambda _: (100, 1 << 40)).check(manager.directories[0].state)
    new = manager.create("orders", 0, b"j" * 16)
    assert stored(new) == []
    new.append_as_leader(batch(b"new"), 0)
    (kept,) = stage.path.glob("orders-0.*-stray")
    assert (kept / "00000000000000000000.log").stat().st_size
    manager.close()
    again = stage.manager()
    assert stored(again.logs["orders", 0]) == [(0, b"new")]
    again.abandon()


def test_a_folder_that_cannot_be_deleted_now_is_deleted_later(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = stage.manager()
    manager.create("orders", 0)
    manager.delete("orders", 0)

    def fail(_path: str) -> None:
        raise OSError(errno.EMFILE, "too many")

    with monkeypatch.context() as patch:
        patch.setattr(stage.files, "remove_tree", fail, raising=False)
        manager.doomed_folders.delete_due(NOW + 100_000)
    assert list(stage.path.glob("*-delete"))
    manager.doomed_folders.delete_due(NOW + 1_000_000)
    assert not list(stage.path.glob("*-delete"))
    manager.abandon()


def test_a_new_log_goes_where_there_is_room(tmp_path: Path) -> None:
    manager = LogManager([str(tmp_path / "a"), str(tmp_path / "b")], clock_ms=Clock(), files=QuickFiles())
    manager.load()
    manager.directories[0].state.full = True
    for number in range(3):
        assert manager.create("orders", number).directory is manager.directories[1].state
    manager.close()
