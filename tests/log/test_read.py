"""Reading: whole batches, limits, bound, file slices, offsets by time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.log.config import LogConfig
from ixion.broker.log.handle import FileSlice
from ixion.broker.log.log import Log
from ixion.broker.log.reader import UNVERIFIED, read, read_slice
from ixion.broker.log.retention import delete_doomed, take_out
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.codec.sink import joined
from ixion.language.records.batches import iter_batches
from tests.log.support import NOW, Box, QuickFiles, batch, find_by_timestamp, find_max_timestamp, stored


def fill(log: Log, batches: int = 30, records: int = 3, size: int = 40) -> None:
    for number in range(batches):
        log.append_as_leader(batch(*[b"x" * size] * records, timestamp=NOW + number * 10), 0)


@pytest.fixture
def log(box: Box) -> Log:
    box.config = LogConfig(segment_bytes=1500, index_interval_bytes=400)
    log = box.open()
    fill(log)
    return log


def test_every_offset_finds_its_batch(log: Log) -> None:
    for offset in range(90):
        views = list(iter_batches(read(log, offset, 1, Bound.END).records))
        assert len(views) == 1
        assert views[0].base_offset <= offset <= views[0].last_offset


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_read_gives_whole_batches_within_its_limits(data: st.DataObject) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        box = Box(
            Path(folder), LogConfig(segment_bytes=2000, index_interval_bytes=data.draw(st.sampled_from([0, 300, 4096])))
        )
        log = box.open()
        ends = [0]
        for size in data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=25)):
            ends.append(ends[-1] + 2)
            log.append_as_leader(batch(b"x" * size, b"y"), 0)
        log.raise_high_watermark(data.draw(st.sampled_from(ends)))
        for _ in range(8):
            offset = data.draw(st.integers(0, log.end_offset))
            max_bytes = data.draw(st.integers(0, 2500))
            min_one = data.draw(st.booleans())
            bound = data.draw(st.sampled_from([Bound.END, Bound.VISIBLE]))
            limit = log.end_offset if bound == Bound.END else log.high_watermark
            found = read(log, offset, max_bytes, bound, min_one)
            piece = read_slice(log, offset, max_bytes, bound, min_one, at_once=data.draw(st.integers(0, 2500)))
            assert joined([piece.records]) == found.records
            views = list(iter_batches(found.records))
            if offset >= limit:
                assert not views
                continue
            if views:
                assert views[0].base_offset <= offset <= views[0].last_offset
                assert views[-1].last_offset < limit
                assert len(found.records) <= max_bytes or (min_one and len(views) == 1)
                following = int(views[-1].last_offset) + 1
                if following < limit and log.segments.slot_of(following) == log.segments.slot_of(offset):
                    (another,) = iter_batches(read(log, following, 1, Bound.END).records)
                    assert len(found.records) + another.size_in_bytes > max_bytes  # as much as fits
            else:
                assert not min_one
        assert [offset for offset, _ in stored(log)] == list(range(log.end_offset))


@pytest.mark.parametrize("offset", [-1, 91])
def test_an_offset_outside_the_log_is_out_of_range(log: Log, offset: int) -> None:
    with pytest.raises(KafkaError) as caught:
        read(log, offset, 100, Bound.END)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_end_of_the_log_is_empty(log: Log) -> None:
    assert read(log, 90, 100, Bound.END).records == b""
    piece = read_slice(log, 90, 100, Bound.END)
    assert (piece.records, piece.size, piece.segment_base) == (b"", 0, -1)


def test_records_below_the_log_start_are_gone(log: Log) -> None:
    log.raise_high_watermark(50)
    log.raise_log_start(31)
    with pytest.raises(KafkaError) as caught:
        read(log, 30, 100, Bound.END)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert stored(log)[0][0] == 31
    assert not log.raise_log_start(31)
    with pytest.raises(KafkaError) as caught:
        log.raise_log_start(51)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_negative_size_is_refused(log: Log) -> None:
    with pytest.raises(KafkaError) as caught:
        read(log, 0, -1, Bound.END)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_a_slice_survives_the_deletion_of_its_segment(log: Log) -> None:
    piece = read_slice(log, 0, 10_000, Bound.END, at_once=0).records
    assert isinstance(piece, FileSlice)
    expected = piece.read(0, piece.size)
    with log.lock:
        take_out(log, log.segments.first, NOW)
    delete_doomed(log, NOW + log.config.file_delete_delay_ms)
    assert piece.read(0, piece.size) == expected
    assert piece.read(3, 10) == expected[3:13]


def test_a_reader_that_comes_back_needs_no_search(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = read_slice(log, 60, 10_000, Bound.END)
    assert isinstance(piece.records, bytes)
    views = list(iter_batches(piece.records))
    following = int(views[-1].last_offset) + 1
    slot = log.segments.slot_of(following - 1)
    assert log.segments.at(slot)._hints[following] == piece.position + piece.size


def test_the_high_watermark_only_grows_and_stays_within_the_log(log: Log) -> None:
    assert log.raise_high_watermark(10)
    assert not log.raise_high_watermark(10)
    with pytest.raises(ValueError, match="beyond its end"):
        log.raise_high_watermark(91)


def test_an_offset_is_found_by_time(log: Log) -> None:
    for timestamp, offset in [(0, 0), (NOW, 0), (NOW + 1, 3), (NOW + 10, 3), (NOW + 290, 87)]:
        found = find_by_timestamp(log, timestamp)
        assert found is not None
        assert (found.offset, found.leader_epoch) == (offset, 0)
    assert find_by_timestamp(log, NOW + 291) is None


def test_the_largest_timestamp_is_found_wherever_it_is(box: Box) -> None:
    log = box.open()
    assert find_max_timestamp(log) is None
    for timestamp in (5, 900, 7, 8):
        log.append_as_leader(batch(b"a", b"b", timestamp=timestamp), 0)
    found = find_max_timestamp(log)
    assert found is not None
    assert (found.timestamp, found.offset) == (900, 2)


@pytest.mark.parametrize("clean", [True, False])
def test_times_are_found_after_a_restart(box: Box, clean: bool) -> None:
    box.config = LogConfig(segment_bytes=1500, index_interval_bytes=400)
    log = box.open()
    fill(log)
    log.close()
    log = box.open(clean=clean)
    found = find_by_timestamp(log, NOW + 155)
    assert found is not None
    assert found.offset == 48
    biggest = find_max_timestamp(log)
    assert biggest is not None
    assert biggest.offset == 87


class SizedReads(QuickFiles):
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def read(self, fd: int, size: int, position: int) -> bytes:
        self.sizes.append(size)
        return super().read(fd, size, position)


@pytest.mark.parametrize("max_bytes", [900, 4096, 16_000])
def test_a_small_read_looks_into_the_file_once(box: Box, max_bytes: int) -> None:
    files = SizedReads()
    box.files = files
    log = box.open()
    for _ in range(40):
        log.append_as_leader(batch(b"x" * 900), 0)
    offset = 0
    while offset < 40:
        files.sizes.clear()
        views = list(iter_batches(read(log, offset, max_bytes, Bound.END).records))
        assert len(files.sizes) == 1
        assert [view.base_offset for view in views] == list(range(offset, offset + len(views)))
        assert len(views) == max(1, min(max_bytes // int(views[0].size_in_bytes), 40 - offset))
        offset += len(views)


def test_the_first_reads_after_a_restart_check_a_little_each(box: Box) -> None:
    log = box.open()
    for _ in range(60):
        log.append_as_leader(batch(b"x" * 50_000), 0)
    log.close()
    size = log.size
    files = SizedReads()
    box.files = files
    log = box.open(clean=True)
    files.sizes.clear()
    offset = checked = reads = 0
    while offset < log.end_offset:
        piece = read_slice(log, offset, 1 << 30, Bound.END, at_once=0)
        assert 0 < piece.size <= UNVERIFIED + 51_000
        checked += max(files.sizes)
        assert max(files.sizes) == piece.size
        files.sizes.clear()
        assert isinstance(piece.records, FileSlice)
        for view in iter_batches(piece.records.read(0, piece.size)):
            offset = int(view.last_offset) + 1
        files.sizes.clear()
        reads += 1
    assert checked == size
    assert reads > 4
    # It is all known now: the second time there is nothing to check, and all of it comes at once.
    assert read_slice(log, 0, 1 << 30, Bound.END, at_once=0).size == size
    assert max(files.sizes) < 10_000


def test_a_large_batch_comes_whole_after_a_restart(box: Box) -> None:
    log = box.open()
    large = batch(b"x" * (UNVERIFIED * 3 // 2))
    for _ in range(3):
        log.append_as_leader(large, 0)
    log.close()
    log = box.open(clean=True)
    for offset in range(3):
        assert read_slice(log, offset, 1 << 30, Bound.END).size in (len(large), 2 * len(large))
