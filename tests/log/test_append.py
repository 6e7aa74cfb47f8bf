"""Appending: offsets, timestamps, epochs, rolling, limits. Whatever is refused leaves the log as it was."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.segment import Segment
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import TimestampType
from ixion.language.records.batches import iter_batches
from ixion.language.records.compression import Codec
from ixion.language.records.patch import patch_max_timestamp
from tests.log.support import NOW, Box, batch, stored


def test_the_leader_gives_offsets_and_its_epoch(box: Box) -> None:
    log = box.open()
    first = log.append_as_leader(batch(b"a", b"b"), 5)
    second = log.append_as_leader(batch(b"c"), 6)
    assert (first.first_offset, first.last_offset, first.records) == (0, 1, 2)
    assert (second.first_offset, second.last_offset, second.log_start_offset) == (2, 2, 0)
    views = list(iter_batches(read(log, 0, 10_000, Bound.END).records))
    assert [(view.base_offset, view.leader_epoch) for view in views] == [(0, 5), (2, 6)]
    assert log.epochs.entries() == [(5, 0), (6, 2)]
    assert stored(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_records_may_lie_in_any_buffer_which_is_not_changed(box: Box, kind: type) -> None:
    log = box.open()
    data = batch(b"a", b"b")
    buffer = kind(data)
    log.append_as_leader(buffer, 5)
    assert bytes(buffer) == data
    assert stored(log) == [(0, b"a"), (1, b"b")]


def test_log_append_time_is_the_brokers(box: Box) -> None:
    box.config = LogConfig(message_timestamp_type="LogAppendTime")
    log = box.open()
    box.clock.now_ms = NOW + 12_345
    info = log.append_as_leader(batch(b"a", b"b", timestamp=17, codec=Codec.GZIP), 0)
    assert info.append_time == NOW + 12_345
    (view,) = iter_batches(read(log, 0, 10_000, Bound.END).records)
    assert view.crc_is_valid()
    assert view.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in view.records()] == [NOW + 12_345] * 2


def test_create_time_is_kept(box: Box) -> None:
    log = box.open()
    info = log.append_as_leader(batch(b"a", timestamp=17), 0)
    assert (info.append_time, info.max_timestamp) == (-1, 17)


def test_a_topic_may_set_its_codec(box: Box) -> None:
    box.config = LogConfig(compression_type="lz4")
    log = box.open()
    log.append_as_leader(batch(b"a", b"b", codec=Codec.GZIP, producer=(4, 0, 0)), 3)
    (view,) = iter_batches(read(log, 0, 10_000, Bound.END).records)
    assert (view.codec, view.producer_id, view.base_sequence, view.leader_epoch) == (Codec.LZ4, 4, 0, 3)
    assert [record.value for record in view.records()] == [b"a", b"b"]


@pytest.mark.parametrize(("name", "fast", "slow"), [("gzip", 1, 9), ("lz4", 9, 17), ("zstd", -50, 22)])
def test_and_how_hard_it_tries(box: Box, name: str, fast: int, slow: int) -> None:
    words = b" ".join(random.Random(7).choices([b"%d" % (number * number) for number in range(900)], k=20_000))
    sizes = []
    settings: list[dict[str, Any]] = [{}, {f"compression_{name}_level": fast}, {f"compression_{name}_level": slow}]
    for setting in settings:
        box.config = LogConfig(compression_type=name, **setting)
        log = box.open()
        offset = log.append_as_leader(batch(words), 0).first_offset
        (view,) = iter_batches(read(log, offset, 1_000_000, Bound.END).records)
        assert [record.value for record in view.records()] == [words]
        sizes.append(view.size_in_bytes)
        log.close()
    default, quick, small = sizes
    assert quick >= default >= small
    assert quick > small


def test_several_batches_of_a_coordinator_follow_each_other(box: Box) -> None:
    log = box.open()
    info = log.append_as_leader(batch(b"a", b"b") + batch(b"c"), 0, Origin.COORDINATOR)
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert stored(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.append_as_leader(b"", 0, Origin.COORDINATOR).first_offset == -1


def flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"\x00" * 10, ErrorCode.CORRUPT_MESSAGE),
        (flip(batch(b"a"), 64), ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a")[:-1], ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        (batch(b"x" * 2000), ErrorCode.MESSAGE_TOO_LARGE),
        (batch(b"a", base_offset=1), ErrorCode.INVALID_RECORD),
        (batch(b"a", timestamp=NOW + 2000), ErrorCode.INVALID_TIMESTAMP),
        (batch(b"a", timestamp=NOW - 2000), ErrorCode.INVALID_TIMESTAMP),
        (batch(b"a", key=None), ErrorCode.INVALID_RECORD),
        (batch(b"a")[:8] + b"\xff\xff\xff\xff" + batch(b"a")[12:], ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_bad_records_are_refused_with_their_code_and_leave_no_trace(box: Box, records: bytes, code: ErrorCode) -> None:
    box.config = LogConfig(
        max_message_bytes=1000,
        message_timestamp_after_max_ms=1000,
        message_timestamp_before_max_ms=1000,
        cleanup_policy=frozenset({"compact"}),
    )
    log = box.open()
    log.append_as_leader(batch(b"good"), 0)
    before = {path.name: path.read_bytes() for path in box.folder.iterdir()}
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(records, 0)
    assert caught.value.code == code
    assert {path.name: path.read_bytes() for path in box.folder.iterdir()} == before
    assert stored(log) == [(0, b"good")]
    log.append_as_leader(batch(b"more"), 0)
    assert stored(log) == [(0, b"good"), (1, b"more")]


def test_a_batch_that_fits_no_segment_is_refused(box: Box) -> None:
    box.config = LogConfig(segment_bytes=500)
    log = box.open()
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch(b"x" * 600), 0)
    assert caught.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.end_offset == 0


def test_a_segment_rolls_when_the_next_batch_does_not_fit(box: Box) -> None:
    data = batch(b"x" * 100)
    box.config = LogConfig(segment_bytes=len(data) * 3)
    log = box.open()
    for _ in range(7):
        log.append_as_leader(data, 0)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert sorted(path.name for path in box.folder.glob("*.snapshot")) == [
        "00000000000000000003.snapshot",
        "00000000000000000006.snapshot",
    ]


def test_a_segment_rolls_by_the_age_of_its_records(box: Box) -> None:
    box.config = LogConfig(segment_ms=1000)
    log = box.open()
    log.append_as_leader(batch(b"a", timestamp=NOW), 0)
    log.append_as_leader(batch(b"b", timestamp=NOW + 1000), 0)
    assert len(log.segments) == 1
    info = log.append_as_leader(batch(b"c", timestamp=NOW + 1001), 0)
    assert info.rolled
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_segment_without_timestamps_rolls_by_the_clock(box: Box) -> None:
    box.config = LogConfig(segment_ms=1000)
    log = box.open()
    log.append_as_leader(batch(b"a", timestamp=-1), 0)
    box.clock.now_ms += 1001
    log.append_as_leader(batch(b"b", timestamp=-1), 0)
    assert len(log.segments) == 2


def test_jitter_lets_segments_roll_earlier_but_never_later(box: Box) -> None:
    box.config = LogConfig(segment_ms=1000, segment_jitter_ms=400, segment_bytes=10_000)
    log = box.open()
    ages = []
    started = NOW
    for step in range(3000):
        if log.append_as_leader(batch(b"a", timestamp=NOW + step * 20), 0).rolled:
            ages.append(NOW + step * 20 - started)
            started = NOW + step * 20
    assert min(ages) >= 600
    assert max(ages) <= 1020
    assert len(set(ages)) > 5


def test_an_empty_segment_does_not_age(box: Box) -> None:
    box.config = LogConfig(segment_ms=1000)
    log = box.open()
    box.clock.now_ms += 10_000
    log.append_as_leader(batch(b"a", timestamp=box.clock.now_ms), 0)
    log.roll()
    log.roll()
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_a_segment_rolls_when_its_index_is_full(box: Box) -> None:
    box.config = LogConfig(segment_index_bytes=40, index_interval_bytes=0)
    log = box.open()
    for number in range(20):
        log.append_as_leader(batch(b"a", timestamp=NOW + number), 0)
    assert len(log.segments) > 3
    assert all(path.stat().st_size <= 40 for path in box.folder.glob("*index"))
    assert len(stored(log)) == 20


def test_index_entries_come_by_the_interval(box: Box) -> None:
    data = batch(b"x" * 100)
    box.config = LogConfig(index_interval_bytes=len(data) * 3)
    log = box.open()
    for _ in range(20):
        log.append_as_leader(data, 0)
    # An entry is due when more than the interval lies since the last one: every fourth batch.
    size = len(data)
    assert log.segments.active.index.entries() == [(4, 4 * size), (8, 8 * size), (12, 12 * size), (16, 16 * size)]


def test_a_follower_takes_batches_as_they_are(box: Box, tmp_path: Path) -> None:
    log = box.open()
    data = batch(b"a", b"b", base_offset=0, leader_epoch=3) + batch(b"c", base_offset=7, leader_epoch=4)
    torn = batch(b"d", base_offset=8, leader_epoch=4)
    info = log.append_as_follower(data + torn[:-5])
    assert (info.first_offset, info.last_offset) == (0, 7)
    assert stored(log) == [(0, b"a"), (1, b"b"), (7, b"c")]
    assert log.end_offset == 8
    assert log.epochs.entries() == [(3, 0), (4, 7)]
    assert (box.folder / "00000000000000000000.log").read_bytes() == data
    assert log.append_as_follower(torn[:-5]).first_offset == -1
    assert log.append_as_follower(torn).last_offset == 8


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (batch(b"a", base_offset=2), ErrorCode.OFFSET_OUT_OF_RANGE),
        (batch(b"a", base_offset=9) + batch(b"a", base_offset=9), ErrorCode.OFFSET_OUT_OF_RANGE),
        (flip(batch(b"a", base_offset=3), 64), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_a_follower_refuses_a_batch_out_of_order(box: Box, records: bytes, code: ErrorCode) -> None:
    log = box.open()
    log.append_as_follower(batch(b"a", b"b", b"c"))
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(records)
    assert caught.value.code == code
    assert log.end_offset == 3
    assert len(stored(log)) == 3


def test_far_offsets_start_a_segment_of_their_own(box: Box) -> None:
    log = box.open()
    log.append_as_follower(batch(b"a", base_offset=10))
    log.append_as_follower(batch(b"b", base_offset=20 + (1 << 31)))
    assert [segment.base_offset for segment in log.segments] == [0, 20 + (1 << 31)]
    assert stored(log, 0) == [(10, b"a"), (20 + (1 << 31), b"b")]


def test_flush_messages_asks_for_a_flush(box: Box) -> None:
    box.config = LogConfig(flush_messages=3)
    log = box.open()
    assert not log.append_as_leader(batch(b"a", b"b"), 0).flush_due
    assert log.append_as_leader(batch(b"c"), 0).flush_due
    log.flush()
    assert log.recovery_point == 3
    assert not log.append_as_leader(batch(b"d"), 0).flush_due


def test_settings_can_change_while_the_log_is_open(box: Box) -> None:
    log = box.open()
    log.reconfigure(LogConfig(max_message_bytes=100))
    with pytest.raises(KafkaError):
        log.append_as_leader(batch(b"x" * 200), 0)


@pytest.mark.parametrize("compression_type", ["producer", "zstd"])
def test_a_largest_timestamp_that_is_not_true_is_set_right(box: Box, compression_type: str) -> None:
    box.config = LogConfig(compression_type=compression_type)
    log = box.open()
    lying = bytearray(batch(b"a", timestamp=NOW))
    patch_max_timestamp(lying, 0, TimestampType.CREATE_TIME, NOW + 10**9)
    assert log.append_as_leader(bytes(lying), 0).max_timestamp == NOW
    (view,) = iter_batches(read(log, 0, 10_000, Bound.END).records)
    assert view.max_timestamp == NOW
    assert view.crc_is_valid()


@pytest.mark.parametrize("seed", range(4))
def test_a_follower_takes_what_the_leader_has_whatever_its_segments_hold(tmp_path: Path, seed: int) -> None:
    """A fetch may be larger than a segment, and so may a batch that is older than the setting."""
    chance = random.Random(seed)
    leader = Box(tmp_path / "leader").open()
    for _ in range(40):
        values = [chance.randbytes(chance.choice((10, 200, 2_000))) for _ in range(chance.randrange(1, 4))]
        leader.append_as_leader(batch(*values), chance.randrange(1, 3) if leader.end_offset > 60 else 0)
    box = Box(tmp_path / "follower", config=LogConfig(segment_bytes=chance.choice((300, 1_000, 5_000))))
    follower = box.open()
    while follower.end_offset < leader.end_offset:
        fetched = read(leader, follower.end_offset, chance.choice((1, 4_000, 1 << 20)), Bound.END).records
        info = follower.append_as_follower(fetched)
        assert info.size == len(fetched)
        assert info.last_offset == follower.end_offset - 1
    assert stored(follower) == stored(leader)
    assert follower.epochs.entries() == leader.epochs.entries()
    for segment in follower.segments:
        assert segment.size <= box.config.segment_bytes or count_batches(segment) == 1
    again = box.open()
    assert stored(again) == stored(leader)


def count_batches(segment: Segment) -> int:
    return len(list(iter_batches(Path(segment.path(".log")).read_bytes())))
