"""Log directories: load, create, delete, checkpoints, clean and unclean stops, a disk that fails or fills up."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.disk_guard import DiskGuard, free_and_total
from ixion.broker.log.files import Part
from ixion.broker.log.lock import DirectoryLockedError
from ixion.broker.log.log import Log
from ixion.broker.log.manager import MANY, LogManager
from ixion.broker.log.meta_properties import MetaProperties
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from tests.log.support import NOW, Clock, QuickFiles, batch, stored

TOPIC_ID = UUID("11111111-2222-4333-8444-555555555555").bytes


class SickFiles(QuickFiles):
    """A disk that fails with `error` below the paths named in `sick`."""

    def __init__(self) -> None:
        self.sick: str | None = None
        self.error = errno.EIO
        self.short = 0

    def _check(self, path: str) -> None:
        if self.sick is not None and self.sick in path:
            raise OSError(self.error, os.strerror(self.error), path)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        path = os.readlink(f"/proc/self/fd/{fd}")
        if self.sick is not None and self.sick in path and self.short:
            os.pwrite(fd, b"".join(parts)[: self.short], position)
        self._check(path)
        super().write(fd, position, parts)

    def sync(self, fd: int) -> None:
        self._check(os.readlink(f"/proc/self/fd/{fd}"))
        super().sync(fd)

    def read(self, fd: int, size: int, position: int) -> bytes:
        if self.error == errno.EIO:
            self._check(os.readlink(f"/proc/self/fd/{fd}"))
        return super().read(fd, size, position)


@dataclass(slots=True)
class Stage:
    paths: list[str]
    files: SickFiles = field(default_factory=SickFiles)
    clock: Clock = field(default_factory=Clock)
    config: LogConfig = field(default_factory=LogConfig)
    offline: list[str] = field(default_factory=list)

    def manager(self) -> LogManager:
        manager = LogManager(
            self.paths,
            clock_ms=self.clock,
            config_of=lambda _topic: self.config,
            files=self.files,
            on_offline=self.offline.append,
            recovery_threads=2,
        )
        manager.load()
        return manager


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage([str(tmp_path / "d0"), str(tmp_path / "d1")])


def test_logs_spread_over_the_directories_and_come_back(stage: Stage) -> None:
    manager = stage.manager()
    for partition in range(4):
        log = manager.create("orders", partition, TOPIC_ID)
        log.append_as_leader(batch(b"%d" % partition), 7)
        log.raise_high_watermark(1)
    assert [len(list(Path(path).glob("orders-*"))) for path in stage.paths] == [2, 2]
    manager.close(5)
    for path in stage.paths:
        assert (Path(path) / ".kafka_cleanshutdown").exists()
    again = stage.manager()
    assert not (Path(stage.paths[0]) / ".kafka_cleanshutdown").exists()
    assert sorted(again.logs) == [("orders", partition) for partition in range(4)]
    for (_, partition), log in again.logs.items():
        assert stored(log) == [(0, b"%d" % partition)]
        assert (log.topic_id, log.high_watermark, log.recovery_point) == (TOPIC_ID, 1, 1)
        assert not log.segments.first.trusted
    again.abandon()


def test_after_a_crash_logs_are_recovered_from_their_recovery_point(stage: Stage) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a"), 0)
    log.flush()
    log.append_as_leader(batch(b"b"), 0)
    manager.checkpoints.write_recovery_points()
    manager.abandon()
    again = stage.manager()
    log = again.logs["orders", 0]
    assert stored(log) == [(0, b"a"), (1, b"b")]
    assert log.recovery_point == 1
    assert log.segments.first.trusted
    again.abandon()


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"]
)
def test_a_damaged_checkpoint_costs_time_not_data(stage: Stage, name: str) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a"), 0)
    log.raise_high_watermark(1)
    manager.close()
    (Path(stage.paths[0]) / name).write_bytes(b"\x00\xff")
    again = stage.manager()
    log = again.logs["orders", 0]
    assert stored(log) == [(0, b"a")]
    again.abandon()


def test_the_log_start_survives_a_restart(stage: Stage) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a", b"b", b"c"), 0)
    log.raise_high_watermark(3)
    log.raise_log_start(2)
    manager.close()
    again = stage.manager()
    assert again.logs["orders", 0].log_start == 2
    again.abandon()


def test_a_directory_in_use_is_refused(stage: Stage) -> None:
    manager = stage.manager()
    with pytest.raises(DirectoryLockedError):
        stage.manager()
    manager.close()
    stage.manager().abandon()


def test_a_deleted_log_is_gone_at_once_and_its_files_later(stage: Stage) -> None:
    manager = stage.manager()
    manager.create("orders", 0).append_as_leader(batch(b"a"), 0)
    manager.delete("orders", 0)
    manager.delete("orders", 0)
    root = Path(stage.paths[0])
    assert manager.get("orders", 0) is None
    assert [path.name.rsplit("-", 1)[1] for path in root.glob("orders-0.*")] == ["delete"]
    fresh = manager.create("orders", 0)
    assert fresh.end_offset == 0
    manager.look_after()
    assert list(root.glob("*-delete"))
    stage.clock.now_ms += 60_000
    manager.look_after()
    assert not list(root.glob("*-delete"))
    manager.close()


def test_a_restart_finishes_a_deletion(stage: Stage) -> None:
    manager = stage.manager()
    manager.create("orders", 0)
    manager.delete("orders", 0)
    manager.close()
    again = stage.manager()
    assert again.logs == {}
    again.look_after()
    assert not list(Path(stage.paths[0]).glob("*-delete"))
    again.close()


def test_a_topic_of_another_id_is_refused(stage: Stage) -> None:
    manager = stage.manager()
    manager.create("orders", 0, TOPIC_ID)
    manager.create("orders", 0, TOPIC_ID)
    with pytest.raises(KafkaError) as caught:
        manager.create("orders", 0, UUID(int=7).bytes)
    assert caught.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    manager.close()


def test_one_bad_folder_does_not_stop_its_neighbours(stage: Stage) -> None:
    manager = stage.manager()
    manager.create("good", 0).append_as_leader(batch(b"a"), 0)
    manager.create("bad", 0, TOPIC_ID)
    folder = Path(manager.logs["bad", 0].folder)
    manager.close()
    (folder / "partition.metadata").write_text("nonsense")
    (Path(stage.paths[0]) / "lost+found").mkdir()
    again = stage.manager()
    assert list(again.logs) == [("good", 0)]
    assert "partition.metadata" in again.unreadable["bad", 0]
    with pytest.raises(KafkaError) as caught:
        again.create("bad", 0)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    again.close()


def test_meta_properties_belong_to_each_directory(stage: Stage) -> None:
    manager = stage.manager()
    assert manager.directories[0].meta_properties() is None
    meta = MetaProperties(version=0, cluster_id="abc", node_id=3)
    manager.directories[0].set_meta_properties(meta)
    assert manager.directories[0].meta_properties() == meta
    manager.close()


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_a_failing_disk_takes_its_directory_offline_and_no_other(stage: Stage, error: int) -> None:
    manager = stage.manager()
    first = manager.create("orders", 0)
    second = manager.create("orders", 1)
    for log in (first, second):
        log.append_as_leader(batch(b"a"), 0)
    stage.files.sick = stage.paths[0]
    stage.files.error = error
    stage.files.short = 30
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            first.append_as_leader(batch(b"b"), 0)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert stage.paths[0] in str(caught.value)
    with pytest.raises(KafkaError):
        read(first, 0, 100, Bound.END)
    assert stage.offline == [stage.paths[0]]
    assert list(manager.logs) == [("orders", 1)]
    second.append_as_leader(batch(b"b"), 0)
    assert len(stored(second)) == 2
    assert manager.create("orders", 2).directory is second.directory
    manager.look_after()
    manager.flush_due()
    manager.close()
    assert not (Path(stage.paths[0]) / ".kafka_cleanshutdown").exists()
    stage.files.sick = None
    again = stage.manager()
    assert stored(again.logs["orders", 0]) == [(0, b"a")]
    assert len(stored(again.logs["orders", 1])) == 2
    again.abandon()


def test_a_disk_that_is_full_before_the_guard_saw_it_waits_for_room(stage: Stage) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a"), 0)
    stage.files.sick = stage.paths[0]
    stage.files.error = errno.ENOSPC
    stage.files.short = 30
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            log.append_as_leader(batch(b"b"), 0)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert stored(log) == [(0, b"a")]
    stage.files.sick = None
    assert stage.offline == []
    DiskGuard(1000, lambda _: (5000, 1 << 40)).check(log.directory)
    log.append_as_leader(batch(b"c"), 0)
    assert stored(log) == [(0, b"a"), (1, b"c")]
    manager.abandon()
    again = stage.manager()
    assert stored(again.logs["orders", 0]) == [(0, b"a"), (1, b"c")]
    again.abandon()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_checkpoint_that_finds_no_room_is_written_when_there_is(stage: Stage, error: int) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a"), 0)
    log.flush()
    stage.files.sick = "recovery-point-offset-checkpoint"
    stage.files.error = error
    stage.files.short = 3
    manager.checkpoints.write_all()
    assert log.directory.full
    assert not log.directory.offline
    assert not list(Path(stage.paths[0]).glob("*.tmp")), "what was written of it takes no room"
    assert stored(log) == [(0, b"a")]
    stage.files.sick = None
    DiskGuard(1000, lambda _: (5000, 1 << 40)).check(log.directory)
    manager.checkpoints.write_all()
    manager.abandon()
    again = stage.manager()
    assert again.logs["orders", 0].recovery_point == 1
    again.abandon()


def test_a_recreated_topic_inherits_no_offsets(stage: Stage) -> None:
    """Not even by a crash before the checkpoints are written again."""
    manager = stage.manager()
    for number in range(2):
        log = manager.create("orders", number, None, manager.directories[0])
        log.append_as_leader(batch(*[b"old"] * 9), 0)
        log.raise_high_watermark(9)
        log.raise_log_start(7)
        log.flush()
    manager.checkpoints.write_all()
    for again in range(2):  # known from what was written, then from what was read
        manager.delete("orders", 0)
        new = manager.create("orders", 0, None, manager.directories[0])
        new.append_as_leader(batch(b"a", b"b"), 0)
        manager.abandon()
        manager = stage.manager()
        found = manager.logs["orders", 0]
        assert stored(found) == [(0, b"a"), (1, b"b")], again
        assert (found.log_start, found.recovery_point, found.high_watermark) == (0, 0, 0)
        neighbour = manager.logs["orders", 1]
        assert (neighbour.log_start, neighbour.recovery_point, neighbour.high_watermark) == (7, 9, 9)
        found.raise_high_watermark(2)
        found.raise_log_start(1)
        found.flush()
        manager.checkpoints.write_all()
        manager.abandon()
        manager = stage.manager()
    manager.abandon()


def test_a_log_moves_to_another_directory(stage: Stage) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0, TOPIC_ID, manager.directories[0])
    log.append_as_leader(batch(b"a", b"b"), 3)
    ((_, future),) = manager.of("orders", 0).make_copies(manager.directories[1])
    assert manager.of("orders", 0).make_copies(manager.directories[1]) == [(log, future)]
    future.append_as_follower(read(log, 0, 1000, Bound.END).records)
    manager.close()
    again = stage.manager()
    assert stored(again.future_logs["orders", 0]) == [(0, b"a"), (1, b"b")]
    old = again.logs["orders", 0]
    logs = again.of("orders", 0)
    pairs = logs.make_copies(again.directories[1])
    moved = again.future_logs["orders", 0]
    assert pairs == [(old, moved)]
    logs.name_copies(pairs)
    assert logs.may_put_in_place(pairs)
    logs.put_in_place(pairs)
    again.retire(old)
    assert again.get("orders", 0) is moved
    assert (moved.directory.path, moved.topic_id) == (stage.paths[1], TOPIC_ID)
    moved.append_as_leader(batch(b"c"), 4)
    again.close()
    third = stage.manager()
    assert stored(third.logs["orders", 0]) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert third.future_logs == {}
    third.close()


def test_too_many_open_files_are_no_fault_of_the_disk(stage: Stage) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a"), 0)
    stage.files.sick = stage.paths[0]
    stage.files.error = errno.EMFILE
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch(b"b"), 0)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    stage.files.sick = None
    log.append_as_leader(batch(b"c"), 0)
    assert stored(log) == [(0, b"a"), (1, b"c")]
    assert stage.offline == []
    manager.close()


def test_a_failing_flush_takes_the_directory_offline(stage: Stage) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a"), 0)
    stage.files.sick = stage.paths[0]
    with pytest.raises(KafkaError) as caught:
        log.flush()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0
    manager.abandon()


def test_with_every_directory_offline_nothing_can_be_made(stage: Stage) -> None:
    manager = stage.manager()
    for directory in manager.directories:
        directory.state.fail("testing", OSError(errno.EIO, "x"))
    with pytest.raises(KafkaError) as caught:
        manager.create("orders", 0)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    manager.abandon()


def test_a_disk_that_fills_up_is_read_only_until_there_is_room(stage: Stage) -> None:
    free = {stage.paths[0]: 100, stage.paths[1]: 100_000}
    guard = DiskGuard(1000, lambda path: (free[path], 1 << 40))
    manager = stage.manager()
    first, second = manager.create("orders", 0), manager.create("orders", 1)
    first.append_as_leader(batch(b"a"), 0)

    def look() -> None:
        for directory in manager.directories:
            guard.check(directory.state)

    look()
    with pytest.raises(KafkaError) as caught:
        first.append_as_leader(batch(b"b"), 0)
    assert caught.value.code.retriable
    assert "almost full" in str(caught.value)
    assert stored(first) == [(0, b"a")]
    second.append_as_leader(batch(b"b"), 0)
    free[stage.paths[0]] = 1100  # above the mark, but not by a quarter
    look()
    with pytest.raises(KafkaError):
        first.append_as_leader(batch(b"b"), 0)
    free[stage.paths[0]] = 1250
    look()
    first.append_as_leader(batch(b"b"), 0)
    assert stage.offline == []
    manager.close()


def test_a_real_disk_has_room(tmp_path: Path) -> None:
    stage = Stage([str(tmp_path)])
    manager = stage.manager()
    state = manager.directories[0].state
    DiskGuard(1).check(state)
    assert not state.full
    free, total = free_and_total(str(tmp_path))
    assert 0 < free <= total
    manager.close()


@pytest.mark.parametrize(("free", "full"), [(4_999, True), (5_000, False), (0, True)])
def test_the_mark_of_a_small_disk_is_a_twentieth_of_it(tmp_path: Path, free: int, full: bool) -> None:
    """A volume smaller than the usual mark takes appends, too."""
    state = DirectoryState(str(tmp_path))
    DiskGuard(128 << 20, lambda _: (free, 100_000)).check(state)
    assert state.full is full


def test_a_disk_without_free_inodes_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(tmp_path)
    without = os.statvfs_result((*real[:5], 1_000, 0, 0, *real[8:10]))
    monkeypatch.setattr(os, "statvfs", lambda _: without)
    assert free_and_total(str(tmp_path)) == (0, real.f_blocks * real.f_frsize)


def test_sealed_segments_and_due_logs_are_flushed(stage: Stage) -> None:
    stage.config = LogConfig(flush_ms=1000)
    manager = stage.manager()
    log = manager.create("orders", 0)
    log.append_as_leader(batch(b"a"), 0)
    manager.flush_due()
    assert log.recovery_point == 0
    log.roll()
    log.append_as_leader(batch(b"b"), 0)
    manager.flush_due()
    assert log.recovery_point == 1
    stage.clock.now_ms = NOW + 2000
    manager.flush_due()
    assert log.recovery_point == 2
    manager.close()


def test_settings_reach_open_logs(stage: Stage) -> None:
    manager = stage.manager()
    log = manager.create("orders", 0)
    stage.config = LogConfig(max_message_bytes=10)
    manager.reconfigure("orders")
    with pytest.raises(KafkaError):
        log.append_as_leader(batch(b"a"), 0)
    manager.close()


def test_settings_that_change_while_a_log_is_made_are_its_own(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = stage.manager()
    make = manager.make

    def changed_meanwhile(*given: Any) -> Log:
        made = make(*given)
        stage.config = LogConfig(segment_bytes=2000)
        manager.reconfigure("orders")  # as on the loop, while a worker makes the log
        return made

    monkeypatch.setattr(manager, "make", changed_meanwhile)
    assert manager.create("orders", 0).config.segment_bytes == 2000
    manager.close()


def open_files(stage: Stage) -> int:
    """Of this stage alone: what other tests left open is closed whenever the collector comes by."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue  # that of the listing itself
        found += path.startswith(tuple(stage.paths))
    return found


def test_idle_files_are_closed_and_opened_again(stage: Stage) -> None:
    stage.config = LogConfig(segment_bytes=400, index_interval_bytes=100)
    manager = stage.manager()
    assert open_files(stage) == 2  # the locks
    log = manager.create("orders", 0)
    for number in range(20):
        log.append_as_leader(batch(b"%d" % number * 30), 0)
    expected = stored(log)
    assert open_files(stage) > 6
    manager.look_after()
    assert stored(log) == expected
    manager.look_after()
    manager.look_after()
    assert open_files(stage) == 2
    log.append_as_leader(batch(b"more"), 0)
    assert stored(log) == [*expected, (20, b"more")]
    manager.close()
    assert open_files(stage) == 0


def test_closing_twice_is_fine(stage: Stage) -> None:
    manager = stage.manager()
    manager.create("orders", 0)
    manager.close()
    manager.close()


class MeetingFiles(SickFiles):
    """A disk on which the first sync ends when a second one has begun, once `meeting` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.meeting = False
        self.met = threading.Event()
        self._first = threading.Lock()

    def sync(self, fd: int) -> None:
        if self.meeting and not self.met.is_set():
            if self._first.acquire(blocking=False):
                self.met.wait(60)
                self.meeting = False
            else:
                self.met.set()
        super().sync(fd)


def test_very_many_logs_are_closed_at_the_same_time(stage: Stage) -> None:
    """One after the other, 10,000 logs took longer than a stop may: the next start had to recover them."""
    stage.files = files = MeetingFiles()
    manager = stage.manager()
    for partition in range(MANY):
        manager.create("orders", partition).append_as_leader(batch(b"a"), 0)
    files.meeting = True
    files.sick = str(Path(stage.paths[0]) / "orders-0")
    manager.close()
    assert files.met.is_set()
    assert all(log.closed for log in manager.logs.values())
    assert [(Path(path) / ".kafka_cleanshutdown").exists() for path in stage.paths] == [False, True]


class CountedLogs(dict[TopicPartition, Log]):
    counted = 0

    def values(self) -> Any:
        self.counted += 1
        return super().values()


def test_new_logs_are_spread_without_counting_all_logs_for_each(stage: Stage) -> None:
    """With two directories, 10,000 partitions took 50 million steps to create."""
    manager = stage.manager()
    manager.logs = logs = CountedLogs()
    for partition in range(300):
        manager.create("orders", partition)
    assert [len(list(Path(path).glob("orders-*"))) for path in stage.paths] == [150, 150]
    assert logs.counted < 200
    manager.abandon()
