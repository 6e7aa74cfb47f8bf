"""Offsets by time: right for any order of times, and found with little reading and without the lock."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.timestamps import RECORDS_A_STEP, search_by_timestamp
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.builder import BatchBuilder
from tests.log.support import NOW, Box, QuickFiles, batch, find_by_timestamp, find_max_timestamp


class Reads(QuickFiles):
    """Counts what is read, and how often the log is locked meanwhile."""

    def __init__(self) -> None:
        self.log: Log | None = None
        self.count = 0
        self.size = 0
        self.largest_locked = 0

    def read(self, fd: int, size: int, position: int) -> bytes:
        data = super().read(fd, size, position)
        self.count += 1
        self.size += len(data)
        if self.log is not None and self.log.lock.locked():
            self.largest_locked = max(self.largest_locked, len(data))
        return data


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=40),
    interval=st.sampled_from([0, 100, 300, 1 << 20]),
    segment_bytes=st.sampled_from([500, 2000, 1 << 20]),
    cut=st.integers(0, 160),
    start=st.integers(0, 160),
    restart=st.sampled_from(["no", "clean", "unclean"]),
)
def test_the_first_record_at_or_after_a_time(
    times: list[list[int]], interval: int, segment_bytes: int, cut: int, start: int, restart: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder), LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval))
        log = box.open()
        for group in times:
            builder = BatchBuilder()
            for time in group:
                builder.append(b"k", b"v" * 10, timestamp=NOW + time)
            log.append_as_leader(builder.build(), 0)
        if cut < log.end_offset:
            log.truncate_to(cut)
        log.raise_high_watermark(log.end_offset)
        log.raise_log_start(min(start, log.end_offset))
        if restart != "no":
            log_start = log.log_start
            log.close()
            log = box.open(clean=restart == "clean", log_start=log_start, recovery_point=0)
        flat = [time for group in times for time in group]
        there = [(offset, NOW + flat[offset]) for offset in range(log.log_start, log.end_offset)]
        for wanted in range(NOW - 1, NOW + 32):
            found = find_by_timestamp(log, wanted)
            expected = next((pair for pair in there if pair[1] >= wanted), None)
            assert (None if found is None else (found.offset, found.timestamp)) == expected
        biggest = find_max_timestamp(log)
        if there:
            assert biggest is not None
            assert biggest.timestamp == max(time for _, time in there)
        log.abandon()


def test_equal_times_are_not_walked(tmp_path: Path) -> None:
    files = Reads()
    box = Box(tmp_path, LogConfig(index_interval_bytes=1000), files)
    log = box.open()
    for _ in range(2000):
        log.append_as_leader(batch(b"x" * 100, timestamp=NOW), 0)
    log.append_as_leader(batch(b"later", timestamp=NOW + 1), 0)
    for _ in range(100):
        log.append_as_leader(batch(b"x" * 100, timestamp=NOW), 0)
    files.log = log
    for again in range(2):
        files.count = files.size = 0
        found = find_by_timestamp(log, NOW + 1)
        assert found is not None
        assert found.offset == 2000
        assert files.count < 10
        assert files.size < 30_000
        if not again:
            log.close()
            log = box.open(clean=True)
            files.log = log
    assert files.largest_locked < 30_000


def test_the_records_of_one_batch_are_walked_in_steps_and_without_the_lock(box: Box) -> None:
    log = box.open()
    builder = BatchBuilder()
    for number in range(5000):
        builder.append(None, b"", timestamp=NOW + number)
    log.append_as_leader(builder.build(), 0)
    steps = search_by_timestamp(log, NOW + 4999, Bound.END)
    locked = [log.lock.locked() for _ in steps]
    assert len(locked) >= 5000 // RECORDS_A_STEP
    assert not any(locked)


def test_an_index_that_has_become_shorter_is_an_error_of_the_partition(box: Box) -> None:
    box.config = LogConfig(index_interval_bytes=100)
    log = box.open()
    for number in range(50):
        log.append_as_leader(batch(b"x" * 100, timestamp=NOW + number), 0)
    log.close()
    log = box.open(clean=True)
    for path in box.folder.glob("*.timeindex"):
        path.write_bytes(path.read_bytes()[:24])
    with pytest.raises(KafkaError) as caught:
        find_by_timestamp(log, NOW + 5)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError) as caught:
        find_max_timestamp(log)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.directory.offline
    log.mend()
    found = find_by_timestamp(log, NOW + 5)
    assert found is not None
    assert found.offset == 5
