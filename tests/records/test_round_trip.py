"""What the builder makes, the view reads back: every codec, every field."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.language.records.batch import BatchView, TimestampType
from ixion.language.records.builder import MOST_KEPT, PIECE_SIZE, BatchBuilder
from ixion.language.records.compression import Codec
from ixion.language.records.layout import HEADER_SIZE
from ixion.language.records.recode import recode
from tests.records.forge import batch, record, sized, varint

I64 = st.integers(-(2**63), 2**63 - 1)
BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=4)
RECORDS = st.lists(
    st.tuples(BYTES, BYTES, HEADERS, st.integers(-1, 2**62)),
    min_size=1,
    max_size=12,
)


@given(records=RECORDS, codec=st.sampled_from(list(Codec)), base_offset=st.integers(0, 2**62))
@settings(max_examples=150, deadline=None)
def test_records_come_back_as_they_went_in(
    records: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]],
    codec: Codec,
    base_offset: int,
) -> None:
    builder = BatchBuilder(codec=codec, base_offset=base_offset)
    for key, value, headers, timestamp in records:
        assert builder.append(key, value, headers, timestamp)
    estimate = builder.size_in_bytes
    data = builder.build()
    view = BatchView(data)
    assert view.crc_is_valid()
    assert view.is_complete
    assert view.codec is codec
    assert view.count == len(records)
    assert view.last_offset == base_offset + len(records) - 1
    assert view.max_timestamp == max(timestamp for *_, timestamp in records)
    read = [(record.key, record.value, record.headers, record.timestamp) for record in view]
    assert read == records
    assert [record.offset for record in view] == list(range(base_offset, base_offset + len(records)))
    if codec is Codec.NONE:
        assert estimate == len(data) == view.size_in_bytes


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_a_view_reads_any_buffer_at_any_position(wrap: type[bytes] | type[bytearray] | type[memoryview]) -> None:
    builder = BatchBuilder(
        base_offset=7,
        leader_epoch=3,
        producer_id=11,
        producer_epoch=2,
        base_sequence=2**31 - 1,
        is_transactional=True,
    )
    builder.append(b"k", b"v", timestamp=5)
    builder.append(None, None, [("h", None)], timestamp=4)
    data = builder.build()
    view = BatchView(wrap(b"abc" + data + b"tail"), 3)
    assert view.crc_is_valid()
    assert view.size_in_bytes == len(data) == view.batch_length + 12
    assert (view.base_offset, view.last_offset_delta, view.last_offset, view.next_offset) == (7, 1, 8, 9)
    assert (view.leader_epoch, view.magic, view.count) == (3, 2, 2)
    assert (view.producer_id, view.producer_epoch, view.base_sequence, view.last_sequence) == (11, 2, 2**31 - 1, 0)
    assert (view.base_timestamp, view.max_timestamp) == (5, 5)
    assert view.timestamp_type is TimestampType.CREATE_TIME
    assert view.is_transactional
    assert not view.is_control
    assert not view.has_delete_horizon
    first, second = view
    assert (first.key, first.value, first.headers, first.offset, first.timestamp) == (b"k", b"v", [], 7, 5)
    assert (second.key, second.value, second.headers, second.offset, second.timestamp) == (
        None,
        None,
        [("h", None)],
        8,
        4,
    )
    assert bytes(view.as_view()) == data
    assert bytes(view.payload()) == data[HEADER_SIZE:]


def test_log_append_time_is_the_time_of_every_record() -> None:
    builder = BatchBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME)
    builder.append(None, b"a", timestamp=10)
    builder.append(None, b"b", timestamp=20)
    assert [record.timestamp for record in BatchView(builder.build())] == [20, 20]


def test_a_delete_horizon_replaces_the_base_timestamp() -> None:
    builder = BatchBuilder(delete_horizon=1_000)
    builder.append(b"k", None, timestamp=900)
    view = BatchView(builder.build())
    assert view.has_delete_horizon
    assert view.base_timestamp == 1_000
    assert [record.timestamp for record in view] == [900]


def test_times_at_the_edges_of_64_bits() -> None:
    builder = BatchBuilder()
    for timestamp in (2**63 - 1, 0, 2**62):
        assert builder.append(None, b"", timestamp=timestamp)
    with pytest.raises(ValueError, match="too far"):
        builder.append(None, b"", timestamp=-1 - 2**40)
    assert [record.timestamp for record in BatchView(builder.build())] == [2**63 - 1, 0, 2**62]


def test_holes_in_offsets_survive() -> None:
    builder = BatchBuilder(base_offset=100)
    for offset in (100, 103, 200):
        assert builder.append_at(offset, b"k", b"v", (), 1)
    with pytest.raises(ValueError, match="offset 200 must be above the last offset 200"):
        builder.append_at(200, b"k", b"v", (), 1)
    view = BatchView(builder.build())
    assert [record.offset for record in view] == [100, 103, 200]
    assert (view.count, view.last_offset_delta) == (3, 100)


def test_a_full_builder_refuses_and_stays_as_it_was() -> None:
    builder = BatchBuilder(max_bytes=HEADER_SIZE + 20)
    assert builder.append(None, b"x" * 100)  # the first record always goes in
    before = builder.size_in_bytes
    assert not builder.append(None, b"")
    assert builder.size_in_bytes == before
    assert BatchView(builder.build()).count == 1


@pytest.mark.parametrize("codec", list(Codec))
def test_a_copy_is_the_same_to_the_byte(codec: Codec) -> None:
    """Also headers whose keys are not text, which no client should send and every broker must keep."""
    headers = varint(2) + sized(b"\xff\xfe") + sized(b"x") + sized(b"") + sized(None)
    records = record(0) + record(1, headers=headers, timestamp_delta=9) + record(2, key=None, value=None)
    original = BatchView(batch(records, count=3, base_timestamp=70, max_timestamp=79))
    builder = BatchBuilder(codec=codec)
    for one in original:
        assert builder.append_copy(one)
    copy = BatchView(builder.build())
    assert bytes(recode(copy, Codec.NONE)) == bytes(original.as_view())
    assert next(iter(BatchView(batch(record(headers=headers))))).headers == [(r"\xff\xfe", b"x"), ("", None)]


def test_an_empty_batch_is_a_header_without_codec() -> None:
    view = BatchView(BatchBuilder(codec=Codec.ZSTD, base_offset=5).build())
    assert view.size_in_bytes == HEADER_SIZE
    assert view.codec is Codec.NONE
    assert view.crc_is_valid()
    assert list(view) == []
    assert view.next_offset == 5


def test_a_builder_that_has_ended_shares_nothing_with_the_next_one() -> None:
    first = BatchBuilder()
    first.append(None, b"a" * 1000)
    first.end()
    second = BatchBuilder()
    second.append(None, b"b" * 500)
    first.append(None, b"c")
    assert [record.value for record in BatchView(first.build())] == [b"a" * 1000, b"c"]
    third = BatchBuilder()
    third.append(None, b"d")
    assert [record.value for record in BatchView(second.build())] == [b"b" * 500]
    assert [record.value for record in BatchView(third.build())] == [b"d"]


def test_records_with_large_keys_values_and_headers_stay_in_order() -> None:
    sizes = [10, PIECE_SIZE, MOST_KEPT, 2 * MOST_KEPT]
    records = [
        (b"k" * key, b"v" * value, [("name", b"h" * header)]) for key in sizes for value in sizes for header in sizes
    ]
    builder = BatchBuilder()
    for large_key, large_value, headers in records:
        assert builder.append(large_key, large_value, headers)
    found = [(record.key, record.value, list(record.headers)) for record in BatchView(builder.build())]
    assert found == records
