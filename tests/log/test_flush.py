"""Flushing: what is synced, what is not synced twice, and that nobody waits for it who need not."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Part
from ixion.broker.log.flushing import flush_if_due
from ixion.broker.log.log import Log
from ixion.language.model.errors import KafkaError
from tests.log.support import NOW, Box, Clock, QuickFiles, batch, stored


class Watched(QuickFiles):
    """Notes the name of every file that is synced; `during` runs in the midst of it."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.during: Callable[[], object] = lambda: None

    def sync(self, fd: int) -> None:
        self.synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        self.during()

    def sync_dir(self, path: str) -> None:
        self.synced.append(os.path.basename(path))

    def take(self) -> list[str]:
        taken, self.synced = self.synced, []
        return taken


@pytest.fixture
def files() -> Watched:
    return Watched()


@pytest.fixture
def log(box: Box, files: Watched) -> Log:
    box.files = files
    box.config = LogConfig(segment_bytes=400, index_interval_bytes=100, flush_messages=1)
    return box.open()


def append(log: Log, count: int = 1) -> int:
    for _ in range(count):
        log.append_as_leader(batch(b"x" * 40), 0)
    return log.end_offset


def log_files(names: list[str]) -> list[str]:
    return [name for name in names if name.endswith(".log")]


def test_every_record_on_the_disk_before_it_is_acknowledged(log: Log, files: Watched) -> None:
    for number in range(20):
        assert log.append_as_leader(batch(b"x"), 0).flush_due
        log.flush(number + 1)
        assert log.recovery_point == number + 1
        assert log_files(files.take())


def test_flushed_segments_are_not_synced_again(log: Log, files: Watched) -> None:
    end = append(log, 3)
    log.flush(2)
    assert log.recovery_point == end, "the file was synced as a whole"
    files.take()
    log.flush(end)
    log.flush()
    assert files.take() == []


def test_a_flush_that_is_covered_does_not_wait_for_one_that_runs(log: Log, files: Watched) -> None:
    first = append(log)
    log.flush()
    append(log)
    files.during = lambda: log.flush(first)  # would wait for itself
    log.flush()
    assert log.recovery_point == 2


def test_indexes_and_names_are_synced_only_when_they_have_changed(log: Log, files: Watched) -> None:
    log.config = replace(log.config, index_interval_bytes=300, segment_bytes=100_000)
    zero = "0" * 20
    append(log)
    log.flush()
    new = [f"{zero}.log", f"{zero}.index", f"{zero}.timeindex", "leader-epoch-checkpoint"]
    assert files.take() == [*new, "orders-0"]
    append(log)
    log.flush()
    assert files.take() == [f"{zero}.log"]
    append(log, 3)  # more than index.interval.bytes
    log.flush()
    assert files.take() == new[:3]
    log.append_as_leader(batch(b"x"), 1)
    log.flush()
    assert files.take() == [f"{zero}.log", "leader-epoch-checkpoint", "orders-0"]


def test_a_flush_of_sealed_segments_leaves_the_active_one_alone(log: Log, files: Watched) -> None:
    end = append(log, 10)
    active = log.segments.active.base_offset
    assert 0 < active < end
    log.flush(active)
    assert log.recovery_point == active
    assert f"{active:020d}.log" not in files.take()
    log.flush(active + 1)
    assert log.recovery_point == end
    assert log_files(files.take()) == [f"{active:020d}.log"]


def test_appends_and_reads_go_on_while_a_flush_syncs(log: Log, files: Watched) -> None:
    append(log)

    def append_from_elsewhere() -> None:
        files.during = lambda: None
        thread = threading.Thread(target=append, args=(log, 8))
        thread.start()
        thread.join(30)
        assert not thread.is_alive()

    files.during = append_from_elsewhere
    log.flush()
    assert log.end_offset == 9
    assert log.recovery_point == 1
    log.flush()
    assert log.recovery_point == 9


def test_queued_flushes_become_one(log: Log, files: Watched) -> None:
    """Ten threads want a record each on the disk while a sync is running; one more sync serves them all."""
    log.config = replace(log.config, segment_bytes=100_000)
    running = threading.Event()
    go_on = threading.Event()

    def hold() -> None:
        files.during = lambda: None
        running.set()
        assert go_on.wait(30)

    append(log)
    files.during = hold
    first = threading.Thread(target=log.flush)
    first.start()
    assert running.wait(30)
    threads = []
    wanted = [append(log) for _ in range(10)]
    reached: list[bool] = []

    def flush(to: int) -> None:
        log.flush(to)
        reached.append(log.recovery_point >= to)

    for to in wanted:
        threads.append(threading.Thread(target=flush, args=(to,)))
        threads[-1].start()
    go_on.set()
    for thread in [first, *threads]:
        thread.join(30)
    assert reached == [True] * 10
    assert len(log_files(files.take())) == 2


def test_flush_by_time(box: Box, files: Watched) -> None:
    box.files = files
    box.clock = Clock()
    box.config = LogConfig(segment_bytes=400, flush_ms=1000)
    log = box.open()
    end = append(log, 10)
    flush_if_due(log, NOW + 999)
    assert log.recovery_point == log.segments.active.base_offset
    flush_if_due(log, NOW + 1000)
    assert log.recovery_point == end
    files.take()
    flush_if_due(log, NOW + 5000)
    assert files.take() == []
    log.close()
    flush_if_due(log, NOW + 5000)


class Sick(QuickFiles):
    """Syncs of files with `part` in their names fail with `code`; every write and sync is noted."""

    def __init__(self) -> None:
        self.part = ""
        self.code = 0
        self.steps: list[tuple[str, str, int]] = []
        self.after_write: Callable[[], None] = lambda: None

    def _note(self, what: str, fd: int, size: int) -> str:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        self.steps.append((what, name, size))
        return name

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        self._note("write", fd, sum(len(part) for part in parts))
        super().write(fd, position, parts)
        self.after_write()

    def sync(self, fd: int) -> None:
        if self.part and self.part in self._note("sync", fd, 0):
            raise OSError(self.code, os.strerror(self.code))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_pages_that_a_sync_without_room_may_have_dropped_are_written_again(tmp_path: Path, code: int) -> None:
    files = Sick()
    log = Box(tmp_path, LogConfig(segment_bytes=400), files).open()
    for number in range(6):
        log.append_as_leader(batch(b"%d" % number * 50), 0)
    expected = stored(log)
    files.part, files.code = "00.log", code
    with pytest.raises(KafkaError):
        log.flush()
    assert (log.recovery_point, log.directory.offline) == (0, False)
    files.part = ""
    files.steps.clear()
    log.flush()
    again = {name: size for what, name, size in files.steps if what == "write" and name.endswith(".log")}
    assert sum(again.values()) == log.size, "all that is not flushed, before it is synced"
    assert (log.recovery_point, stored(log)) == (6, expected)
    log.directory.full = False
    log.append_as_leader(batch(b"more"), 0)
    files.steps.clear()
    log.flush()
    assert not [step for step in files.steps if step[0] == "write" and step[1].endswith(".log")], "once is enough"
    log.abandon()


@pytest.mark.parametrize("part", [".index", ".timeindex", "leader-epoch"])
def test_the_next_flush_syncs_the_files_of_a_failed_one(tmp_path: Path, part: str) -> None:
    files = Sick()
    log = Box(tmp_path, LogConfig(segment_bytes=400, index_interval_bytes=0), files).open()
    for number in range(6):
        log.append_as_leader(batch(b"%d" % number * 50), 3)
    files.part, files.code = part, errno.ENOSPC
    with pytest.raises(KafkaError):
        log.flush()
    files.part = "nothing"
    files.steps.clear()
    log.flush()
    assert [name for what, name, _ in files.steps if what == "sync" and part in name]
    log.abandon()


def test_a_truncation_while_all_is_written_again_does_not_end_that(tmp_path: Path) -> None:
    """What stays of the log must be written again too before the recovery point passes it."""
    files = Sick()
    log = Box(tmp_path, LogConfig(segment_bytes=400), files).open()
    for number in range(6):
        log.append_as_leader(batch(b"%d" % number * 50), 0)
    files.part, files.code = "00.log", errno.ENOSPC
    with pytest.raises(KafkaError):
        log.flush()
    files.part = "nothing"
    files.steps.clear()

    def overtake() -> None:
        log.truncations += 1
        files.after_write = lambda: None

    files.after_write = overtake
    log.flush()
    steps = [(what, name) for what, name, _ in files.steps if name.endswith(".log")]
    names = {name for _, name in steps}
    assert len(names) > 1
    last_writes = [index for index, (what, _) in enumerate(steps) if what == "write"][-len(names) :]
    assert {steps[index][1] for index in last_writes} == names
    assert not log.must_rewrite
    log.abandon()


def test_a_truncation_that_finds_no_room_lets_all_be_written_again(tmp_path: Path) -> None:
    files = Sick()
    log = Box(tmp_path, LogConfig(), files).open()
    for number in range(6):
        log.append_as_leader(batch(b"%d" % number * 50), 0)
    files.part, files.code = "00.log", errno.ENOSPC
    with pytest.raises(KafkaError):
        log.truncate_to(4)
    files.part = "nothing"
    log.directory.full = False
    log.mend()
    files.steps.clear()
    log.flush()
    written = [size for what, name, size in files.steps if what == "write" and name.endswith(".log")]
    assert (sum(written), log.recovery_point) == (log.size, 4)
    log.abandon()
