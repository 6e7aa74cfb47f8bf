"""A partition moves to another directory. Appends, truncations and crashes meanwhile lose nothing."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Part
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.mover import MoveCancelledError, Mover
from ixion.broker.log.partition_logs import Pair
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.support import NOW, Clock, QuickFiles, batch, marker, stored

Kept = TypeVar("Kept")

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100, file_delete_delay_ms=1000)


class Meddler(QuickFiles):
    """`meddle` runs before every change to the new directory, as another thread might."""

    def __init__(self) -> None:
        self.meddle: Callable[[str], None] = lambda _: None

    def open(self, path: str) -> int:
        self.meddle(path)
        return super().open(path)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        self.meddle(os.readlink(f"/proc/self/fd/{fd}"))
        super().write(fd, position, parts)

    def sync(self, fd: int) -> None:
        self.meddle(os.readlink(f"/proc/self/fd/{fd}"))

    def sync_dir(self, path: str) -> None:
        self.meddle(path)

    def rename(self, old: str, new: str) -> None:
        self.meddle(old)
        super().rename(old, new)


class Stage:
    def __init__(self, root: Path, files: Meddler | None = None) -> None:
        self.root = root
        self.paths = [str(root / "d0"), str(root / "d1")]
        self.files = files or Meddler()
        self.clock = Clock()
        self.config = CONFIG
        self.manager = self.start()

    def start(self) -> LogManager:
        self.manager = LogManager(
            self.paths, clock_ms=self.clock, config_of=lambda _topic: self.config, files=self.files
        )
        self.manager.load()
        return self.manager

    def create(self, appends: int = 30) -> Log:
        log = self.manager.create("orders", 0, os.urandom(16), self.manager.directories[0])
        for number in range(appends):
            log.append_as_leader(batch(b"%d" % number * 20, key=b"k%d" % (number % 3)), number // 10)
        log.raise_high_watermark(log.end_offset)
        return log

    def mover(self, to: int = 1) -> Mover:
        return Mover(self.manager, "orders", 0, self.manager.directories[to])

    def copies(self) -> list[Pair]:
        return self.manager.of("orders", 0).make_copies(self.manager.directories[1])

    def folders(self) -> list[list[str]]:
        return [sorted(entry.name for entry in Path(path).iterdir() if entry.is_dir()) for path in self.paths]

    def meddle_once(self, at: int, work: Callable[[], object], *, uses_copy: bool = False) -> None:
        """At a change of the new directory at which the log, and the copy if `work` uses it, is not locked."""
        seen = 0
        busy = False

        def meddle(path: str) -> None:
            nonlocal seen, busy
            logs = self.manager.of("orders", 0)
            held = any(log.lock.locked() for log in logs.in_use + (logs.copies if uses_copy else []))
            if not busy and logs.in_use and "-future" in path and not held:
                seen += 1
                if seen == at:
                    busy = True
                    work()

        self.files.meddle = meddle


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_everything_moves(stage: Stage) -> None:
    log = stage.create()
    log.append_as_leader(batch(b"a", b"b", b"c", producer=(7, 0, 0)), 3)
    log.append_as_leader(batch(b"gone", producer=(8, 0, 0), transactional=True), 3)
    log.append_as_leader(marker(8, 0, commit=False), 3, Origin.COORDINATOR)
    log.append_as_leader(batch(b"open", producer=(9, 0, 0), transactional=True), 3)
    log.assign_epoch(5, log.end_offset)
    log.raise_high_watermark(log.end_offset - 1)
    before = stored(log)
    moved = stage.mover().run()
    assert stage.manager.get("orders", 0) is moved
    assert stage.manager.future_logs == {}
    assert moved.directory.path == stage.paths[1]
    assert stored(moved) == before
    for name in ("end_offset", "log_start", "high_watermark", "last_stable_offset", "topic_id"):
        assert getattr(moved, name) == getattr(log, name), name
    assert moved.epochs.entries() == log.epochs.entries() == [(0, 0), (1, 10), (2, 20), (3, 30), (5, 36)]
    assert read(moved, 33, 10_000, Bound.VISIBLE_STABLE).aborted == read_aborted(moved)
    assert moved.append_as_leader(batch(b"a", b"b", b"c", producer=(7, 0, 0)), 5).duplicate
    assert stage.folders()[1] == ["orders-0"]
    stage.clock.now_ms += 1000
    stage.manager.look_after()
    assert stage.folders() == [[], ["orders-0"]]
    stage.manager.close()
    again = stage.start().logs["orders", 0]
    assert stored(again) == before
    assert (again.directory.path, again.topic_id, again.high_watermark) == (stage.paths[1], log.topic_id, 35)
    assert again.epochs.entries() == log.epochs.entries()[:-1]  # of the last one nothing was written


def read_aborted(log: Log) -> list[object]:
    found = [txn for segment in log.segments for txn in segment.txn_index.entries()]
    assert [(txn.producer_id, txn.first_offset, txn.last_offset) for txn in found] == [(8, 33, 34)]
    return list(found)


def test_a_log_that_starts_within_a_batch_and_knows_producers_without_batches(stage: Stage) -> None:
    log = stage.create(0)
    log.append_as_leader(batch(b"x", producer=(7, 0, 0)), 0)
    log.roll()
    log.append_as_leader(batch(b"a", b"b", b"c"), 0)
    log.append_as_leader(batch(b"d"), 0)
    log.raise_high_watermark(5)
    log.raise_log_start(2)
    stage.manager.look_after()
    assert log.segments.first.base_offset == 1
    moved = stage.mover().run()
    assert stored(moved) == [(2, b"b"), (3, b"c"), (4, b"d")]
    for _ in range(2):
        assert (moved.log_start, moved.end_offset, moved.high_watermark) == (2, 5, 5)
        assert stored(moved) == [(2, b"b"), (3, b"c"), (4, b"d")]
        assert moved.producers.producers[7].last_sequence == 0
        stage.manager.close()
        moved = stage.start().logs["orders", 0]


def crash(stage: Stage) -> Log:
    stage.manager.abandon()
    return stage.start().logs["orders", 0]


def test_an_empty_log_moves(stage: Stage) -> None:
    log = stage.create(0)
    log.truncate_fully(70)
    moved = stage.mover().run()
    assert (moved.log_start, moved.end_offset) == (70, 70)
    assert moved.append_as_leader(batch(b"x"), 0).first_offset == 70


def test_a_move_to_where_it_is_does_nothing(stage: Stage) -> None:
    log = stage.create()
    assert stage.mover(0).run() is log
    log.append_as_leader(batch(b"x"), 4)


def test_there_must_be_something_to_move(stage: Stage) -> None:
    with pytest.raises(KafkaError) as caught:
        stage.mover().run()
    assert caught.value.code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert stage.folders() == [[], []]


def test_a_move_under_appends_and_reads_loses_nothing(stage: Stage) -> None:
    """Back and forth, while one thread writes and another reads along."""
    stage.config = LogConfig(segment_bytes=10_000, file_delete_delay_ms=0)
    stage.create(0)
    done = threading.Event()
    all_written = threading.Event()  # what was begun when `done` came is written, too
    failures: list[BaseException] = []
    written: list[bytes] = []
    seen: list[bytes] = []

    def insist(use: Callable[[Log], Kept]) -> Kept:
        while True:
            log = stage.manager.logs["orders", 0]
            try:
                return use(log)
            except KafkaError as error:
                if error.code != ErrorCode.KAFKA_STORAGE_ERROR or not log.closed:
                    raise

    def write() -> None:
        try:
            while not done.is_set() and len(written) < 5000:
                value = b"%d" % len(written)
                info = insist(lambda log, value=value: log.append_as_leader(batch(value), 0))  # type: ignore[misc]
                assert info.first_offset == len(written)
                written.append(value)
                insist(lambda log: log.raise_high_watermark(log.end_offset))
        finally:
            all_written.set()

    def follow() -> None:
        while not all_written.is_set() or (not failures and len(seen) < len(written)):
            new = insist(lambda log: stored(log, len(seen)))
            assert [offset for offset, _ in new] == list(range(len(seen), len(seen) + len(new)))
            seen.extend(value for _, value in new)

    def guarded(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)
                done.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    threads = [guarded(write), guarded(follow)]
    try:
        for move in range(6):
            moved = stage.mover(1 - move % 2).run()
            assert moved is stage.manager.get("orders", 0)
            stage.manager.look_after()
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    assert not failures
    assert written
    assert seen == written
    log = stage.manager.logs["orders", 0]
    assert log.directory.path == stage.paths[0]
    assert [value for _, value in stored(log)] == written
    assert [value for _, value in stored(crash(stage))] == written


def test_the_caller_has_the_new_log_before_others_find_the_old_one_closed(stage: Stage) -> None:
    log = stage.create()
    found: list[tuple[Log, bool]] = []
    moved = Mover(
        stage.manager,
        "orders",
        0,
        stage.manager.directories[1],
        on_moved=lambda new: found.append((new, log.lock.locked() and log.closed)),
    ).run()
    assert found == [(moved, True)]
    with pytest.raises(KafkaError, match="closed"):
        log.append_as_leader(batch(b"lost"), 4)


class LastMinute(Mover):
    """Something happens when the last step is about to begin, for the first time."""

    def __init__(self, stage: Stage, work: Callable[[], object]) -> None:
        super().__init__(stage.manager, "orders", 0, stage.manager.directories[1])
        self.work: Callable[[], object] | None = work

    def _finish(self, pairs: list[Pair]) -> bool:
        if self.work is not None:
            self.work()
            self.work = None
        return super()._finish(pairs)


def test_truncated_in_the_last_minute(stage: Stage) -> None:
    log = stage.create()

    def cut() -> None:
        log.truncate_to(20)
        for _ in range(20):
            log.append_as_leader(batch(b"other"), 7)

    moved = LastMinute(stage, cut).run()
    assert [value for _, value in stored(moved)][20:] == [b"other"] * 20


def test_all_records_are_deleted_in_the_last_minute(stage: Stage) -> None:
    log = stage.create()

    def go_on_and_delete() -> None:
        for _ in range(20):
            log.append_as_leader(batch(b"new"), 7)
        log.raise_high_watermark(50)
        log.raise_log_start(40)
        stage.manager.look_after()

    moved = LastMinute(stage, go_on_and_delete).run()
    assert [offset for offset, _ in stored(moved)] == list(range(40, 50))


@pytest.mark.parametrize(("flush_messages", "flushed"), [(1, False), (1 << 60, True)])
def test_flushed_records_survive_a_move(stage: Stage, flush_messages: int, flushed: bool) -> None:
    """Nor does a flush that waits for the log find its record less safe than it was promised."""
    stage.config = LogConfig(segment_bytes=600, flush_messages=flush_messages)
    log = stage.create()

    def append() -> None:
        log.append_as_leader(batch(b"precious"), 7)
        if flushed:
            log.flush()

    moved = LastMinute(stage, append).run()
    log.flush(31)
    assert moved.recovery_point == moved.end_offset == 31


STEPS = [1, 2, 3, 5, 8, 12, 16]


@pytest.mark.parametrize("at", STEPS)
def test_appended_to_under_the_move(stage: Stage, at: int) -> None:
    log = stage.create()
    stage.meddle_once(at, lambda: [log.append_as_leader(batch(b"new"), 4) for _ in range(20)])
    moved = stage.mover().run()
    assert len(stored(moved)) == 50
    assert [offset for offset, _ in stored(moved)] == list(range(50))


@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("to", [0, 5, 29])
def test_truncated_under_the_move(stage: Stage, at: int, to: int) -> None:
    """What was cut off does not move along, though other records have its offsets."""
    log = stage.create()

    def cut() -> None:
        log.truncate_to(to)
        for _ in range(40):
            log.append_as_leader(batch(b"other"), 7)

    stage.meddle_once(at, cut)
    moved = stage.mover().run()
    values = [value for _, value in stored(moved)]
    assert values == [b"%d" % number * 20 for number in range(to)] + [b"other"] * 40
    assert moved.epochs.entries() == log.epochs.entries()


@pytest.mark.parametrize("at", STEPS)
@pytest.mark.parametrize("start", [3, 17, 30])
def test_records_are_deleted_under_the_move(stage: Stage, at: int, start: int) -> None:
    log = stage.create()

    def delete() -> None:
        log.raise_log_start(start)
        stage.manager.look_after()

    stage.meddle_once(at, delete)
    moved = stage.mover().run()
    assert (moved.log_start, moved.end_offset) == (start, 30)
    assert [offset for offset, _ in stored(moved)] == list(range(start, 30))
    assert crash(stage).log_start == start


@pytest.mark.parametrize("at", STEPS)
def test_compacted_under_the_move(stage: Stage, at: int) -> None:
    stage.config = LogConfig(segment_bytes=600, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01)
    log = stage.create()
    cleaner = Cleaner(stage.manager, 24 * 1000)
    stage.meddle_once(at, lambda: cleaner.clean_dirtiest(NOW))
    moved = stage.mover().run()
    assert moved.end_offset == 30
    moved.roll()
    while cleaner.clean_dirtiest(NOW) is not None:
        pass
    assert [offset for offset, _ in stored(moved)] == [27, 28, 29]
    assert log.closed


@pytest.mark.parametrize("at", STEPS)
def test_cancelled(stage: Stage, at: int) -> None:
    log = stage.create()
    mover = stage.mover()
    stage.meddle_once(at, mover.cancel)
    with pytest.raises(MoveCancelledError):
        mover.run()
    check_not_moved(stage, log)


def check_not_moved(stage: Stage, log: Log) -> None:
    stage.files.meddle = lambda _: None
    assert stage.manager.get("orders", 0) is log
    assert stage.manager.future_logs == {}
    assert stage.folders() == [["orders-0"], []]
    log.append_as_leader(batch(b"more"), 4)
    assert [offset for offset, _ in stored(log)] == list(range(31))


@pytest.mark.parametrize("at", STEPS)
def test_deleted_under_the_move(stage: Stage, at: int) -> None:
    stage.create()
    stage.meddle_once(at, lambda: stage.manager.delete("orders", 0), uses_copy=True)
    with pytest.raises(KafkaError, match="closed"):
        stage.mover().run()
    stage.manager.doomed_folders.delete_due(NOW + 1000)
    assert stage.folders() == [[], []]
    assert stage.manager.logs == {}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("at", STEPS)
def test_a_new_disk_that_is_full_or_fails(stage: Stage, at: int, code: int) -> None:
    log = stage.create()
    steps = 0

    def fail(path: str) -> None:
        nonlocal steps
        if "-future" in path:
            steps += 1
            if steps == at:
                raise OSError(code, os.strerror(code), path)

    stage.files.meddle = fail
    with pytest.raises(KafkaError):
        stage.mover().run()
    directory = stage.manager.directories[1]
    assert directory.state.full != directory.state.offline
    if directory.state.full:
        check_not_moved(stage, log)
    assert stage.manager.future_logs == {}
    assert stored(log)


def test_a_move_that_a_restart_interrupted_starts_over(stage: Stage) -> None:
    before = stored(stage.create())
    ((_, future),) = stage.copies()
    future.append_as_follower(batch(b"of another life", base_offset=4))
    stage.manager.close()
    stage.start()
    assert ("orders", 0) in stage.manager.future_logs
    moved = stage.mover().run()
    assert stored(moved) == before


class Killed(Meddler):
    """Keeps a copy of everything before each change."""

    def __init__(self, root: Path, copies: Path) -> None:
        super().__init__()
        self.root = root
        self.copies = copies
        self.count = -1

    def copy(self) -> None:
        if self.count >= 0:
            shutil.copytree(self.root, self.copies / str(self.count))
            self.count += 1

    def open(self, path: str) -> int:
        self.copy()
        return super().open(path)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        self.copy()
        super().write(fd, position, parts)

    def truncate(self, fd: int, size: int) -> None:
        self.copy()
        super().truncate(fd, size)

    def rename(self, old: str, new: str) -> None:
        self.copy()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.copy()
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self.copy()
        super().remove_tree(path)


def test_killed_at_any_step_of_a_move(tmp_path: Path) -> None:
    files = Killed(tmp_path / "root", tmp_path / "copies")
    stage = Stage(tmp_path / "root", files)
    log = stage.create(0)
    log.append_as_leader(batch(b"deleted", b"a", b"b"), 0)
    for _ in range(4):
        log.append_as_leader(batch(b"x" * 100), 0)
    log.raise_high_watermark(log.end_offset)
    log.raise_log_start(1)
    stage.manager.checkpoints.write_all()
    expected = stored(log)
    files.count = 0
    moved = stage.mover().run()
    moved.append_as_leader(batch(b"later"), 9)
    stage.clock.now_ms += 1000
    stage.manager.look_after()
    places = set()
    for step in range(files.count):
        again = Stage(tmp_path / "copies" / str(step))
        found = again.manager.logs["orders", 0]
        assert stored(found) in (expected, [*expected, (7, b"later")]), step
        assert found.log_start == 1, step
        assert found.topic_id == log.topic_id
        places.add(found.directory.path[-2:])
        # There is but one now, and the move can be done again.
        assert [name for names in again.folders() for name in names].count("orders-0") == 1
        found.append_as_leader(batch(b"after all"), 10)
        before = stored(found)
        assert stored(again.mover().run()) == before
        again.manager.close()
        shutil.rmtree(again.root)
    assert places == {"d0", "d1"}
    assert files.count > 30


def test_a_partition_found_twice_is_used_where_it_is_further_on(stage: Stage) -> None:
    for longer in (0, 1):
        for directory in (0, 1):
            log = stage.manager.create("twice", longer, None, stage.manager.directories[directory])
            for _ in range(3 if directory == longer else 2):
                log.append_as_leader(batch(b"x"), 0)
            del stage.manager.logs["twice", longer]
            log.close()
    stage.manager.close()
    for _ in range(2):
        stage.start()
        for longer in (0, 1):
            log = stage.manager.logs["twice", longer]
            assert (log.directory.path, log.end_offset) == (stage.paths[longer], 3)
        stage.manager.close()
    assert [[name.endswith("-stray") for name in names] for names in stage.folders()] == [[False, True], [True, False]]


def without_room(stage: Stage) -> Log:
    """A move that finds no room to rename the old folder, which stays."""
    current = stage.create()
    current.append_as_leader(batch(b"undone", producer=(7, 0, 0), transactional=True), 3)
    current.append_as_leader(marker(7, 0, commit=False), 3, Origin.COORDINATOR)
    current.raise_high_watermark(current.end_offset)
    current.raise_log_start(3)

    def meddle(path: str) -> None:
        if current.closed and path == current.folder:
            raise OSError(errno.ENOSPC, "No space left on device")

    stage.files.meddle = meddle
    moved = stage.mover().run()
    stage.files.meddle = lambda _: None
    current.directory.full = False
    assert stage.folders() == [["orders-0"], ["orders-0"]]
    return moved


def test_the_next_start_deletes_a_folder_that_a_move_could_not_delete(stage: Stage) -> None:
    moved = without_room(stage)
    expected, start = stored(moved, bound=Bound.VISIBLE_STABLE), moved.log_start
    stage.manager.close()
    assert [(Path(path) / ".kafka_cleanshutdown").exists() for path in stage.paths] == [False, True]
    stage.start()
    log = stage.manager.logs["orders", 0]
    log.raise_high_watermark(log.end_offset)
    assert (log.log_start, stored(log, bound=Bound.VISIBLE_STABLE)) == (start, expected)
    stage.clock.now_ms += 10_000
    stage.manager.doomed_folders.delete_due(stage.clock.now_ms)
    assert sorted(stage.folders()) == [[], ["orders-0"]]
    stage.manager.close()


def test_a_move_back_to_where_a_move_could_not_delete(stage: Stage) -> None:
    moved = without_room(stage)
    expected = stored(moved)
    assert stored(stage.mover(0).run()) == expected
    assert not any(directory.state.offline for directory in stage.manager.directories)
    stage.manager.close()


def test_a_copy_that_a_kill_left_is_deleted(stage: Stage) -> None:
    """Killed after the future log got its name and before it was put in place."""
    log = stage.create()
    ((_, future),) = pairs = stage.copies()
    mover = stage.mover()
    mover._start_over(log, future)
    mover._catch_up(log, future)
    future.flush()
    stage.manager.of("orders", 0).name_copies(pairs)
    log.append_as_leader(batch(b"only here"), 3)
    expected = stored(log)
    stage.manager.abandon()
    stage.start()
    assert stored(stage.manager.logs["orders", 0]) == expected
    stage.clock.now_ms += 10_000
    stage.manager.doomed_folders.delete_due(stage.clock.now_ms)
    assert stage.folders() == [["orders-0"], []]
    stage.manager.close()


def test_the_copy_is_not_truncated_under_the_lock_of_the_log_in_use(stage: Stage) -> None:
    """A truncation writes checkpoints, and a thread that writes them takes the locks of logs."""
    current = stage.manager.create("orders", 0, os.urandom(16), stage.manager.directories[0])
    current.append_as_leader(batch(*[b"one batch"] * 10), 0)
    current.raise_high_watermark(10)
    current.raise_log_start(5)
    mover = stage.mover()
    ((_, future),) = pairs = stage.copies()
    mover._start_over(current, future)
    assert not mover._finish(pairs)
    assert (future.log_start, future.end_offset) == (5, 5)
    moved = mover.run()
    assert [offset for offset, _ in stored(moved)] == [5, 6, 7, 8, 9]
