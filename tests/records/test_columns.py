"""Columns hold what the record-by-record decoder reads, and a liar gets no further than with it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView, TimestampType
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.columns import Columns, read_columns
from ixion.language.records.compression import Codec, compress
from tests.records.forge import batch, record, sized, varint

BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=20)), max_size=4)
RECORDS = st.lists(
    st.tuples(st.integers(1, 2**20), BYTES, BYTES, HEADERS, st.integers(-1, 2**61)), min_size=1, max_size=20
)
Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def rows(columns: Iterable[Columns]) -> list[Row]:
    return [
        (one.offsets[row], one.timestamps[row], one.keys[row], one.values[row], one.headers(row))
        for one in columns
        for row in range(len(one))
    ]


def records(batches: Iterable[BatchView], start: int = 0, end: int = 2**61) -> list[Row]:
    return [
        (one.offset, one.timestamp, one.key, one.value, one.headers)
        for view in batches
        for one in view
        if start <= one.offset < end
    ]


@given(
    batches=st.lists(
        st.tuples(RECORDS, st.sampled_from(list(Codec)), st.sampled_from(list(TimestampType))), max_size=3
    ),
    base=st.integers(0, 2**60),
    span=st.tuples(st.integers(0, 80), st.integers(0, 80)),
    max_rows=st.integers(1, 50),
    max_bytes=st.integers(1, 2000),
    together=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_they_agree_with_the_records_one_by_one(
    batches: list[
        tuple[list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]], int]], Codec, TimestampType]
    ],
    base: int,
    span: tuple[int, int],
    max_rows: int,
    max_bytes: int,
    together: bool,
) -> None:
    views = []
    offset = base
    for made, codec, kind in batches:
        builder = BatchBuilder(codec=codec, base_offset=offset, timestamp_type=kind)
        for gap, key, value, headers, timestamp in made:
            assert builder.append_at(offset, key, value, headers, timestamp)
            offset += gap
        views.append(BatchView(builder.build()))
    if together:
        views = list(iter_batches(b"".join(bytes(view.as_view()) for view in views)))
    everything = records(views)
    offsets = [row[0] for row in everything] or [base]
    start = offsets[span[0] % len(offsets)]
    end = offsets[span[1] % len(offsets)]
    assert rows(read_columns(views, max_rows=max_rows, max_bytes=max_bytes)) == everything
    found = list(read_columns(views, start, end, max_rows=max_rows, max_bytes=max_bytes))
    assert rows(found) == records(views, start, end)
    assert all(0 < len(columns) <= max_rows for columns in found)
    kinds = [kind for columns in found for kind in columns.timestamp_types]
    assert kinds == [view.timestamp_type for view in views for one in view if start <= one.offset < end]
    for columns in found:
        for column in (columns.keys, columns.values):
            listed = [column[row] for row in range(len(column))]
            assert column.data == b"".join(each or b"" for each in listed)  # gathers them
            assert [column[row] for row in range(len(column))] == listed


def test_the_example_of_the_module() -> None:
    builder = BatchBuilder(base_offset=5)
    builder.append(b"a", None)
    builder.append(b"bc", b"")
    (columns,) = read_columns([BatchView(builder.build())])
    assert list(columns.offsets) == [5, 6]
    assert columns.keys.data == b"abc"
    assert list(memoryview(columns.keys.ends).cast("i")) == [0, 1, 3]
    assert columns.keys.validity == b""
    assert columns.values.data == b""
    assert list(memoryview(columns.values.ends).cast("i")) == [0, 0, 0]
    assert columns.values.validity == b"\x02"
    assert (columns.values[0], columns.values[1]) == (None, b"")


def test_values_of_any_size_stand_one_behind_the_other() -> None:
    values = [b"a" * 20_000, b"b" * 10_000, b"", b"c" * 10_000, b"d" * 16_384, b"e", b"f" * 16_385, b"g"]
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value)
    (columns,) = read_columns([BatchView(builder.build())])
    assert columns.values.data == b"".join(values)
    assert [columns.values[row] for row in range(len(values))] == values


def two_batches() -> bytes:
    """Offsets 0 to 3, values "0", null, "2", null, in one `bytes` object."""
    made = b""
    for base in (0, 2):
        builder = BatchBuilder(base_offset=base)
        builder.append(b"k", b"%d" % base)
        builder.append(None, None)
        made += builder.build()
    return made


def test_uncompressed_batches_of_one_object_are_not_copied() -> None:
    made = two_batches()
    (columns,) = read_columns(iter_batches(made))
    assert columns.keys.source is columns.values.source is made
    assert [columns.values[row] for row in range(4)] == [b"0", None, b"2", None]
    assert columns.values.data == b"02"
    assert list(memoryview(columns.values.ends).cast("i")) == [0, 1, 1, 2, 2]
    assert columns.values.source is not made  # which may be freed now


def test_batches_of_two_objects_or_in_another_order_are_copied() -> None:
    made = two_batches()
    first, second = iter_batches(made)
    for views in ([second, first], [first, BatchView(bytes(second.as_view()))]):
        (columns,) = read_columns(views)
        assert columns.values.is_dense
        expected = [record.value for view in views for record in view]
        assert [columns.values[row] for row in range(4)] == expected
        assert columns.keys.data == b"kk"


def test_columns_without_a_byte_keep_no_source() -> None:
    builder = BatchBuilder()
    for value in (None, b"", None):
        builder.append(None, value)
    (columns,) = read_columns([BatchView(builder.build())])
    assert (columns.keys.source, columns.values.source) == (b"", b"")
    assert [columns.values[row] for row in range(3)] == [None, b"", None]
    assert list(memoryview(columns.values.ends).cast("i")) == [0] * 4


def test_rows_that_are_not_there() -> None:
    (columns,) = read_columns([BatchView(batch(record()))])
    for row in (-1, 1):
        with pytest.raises(IndexError, match=f"there is no row {row} among 1"):
            columns.keys[row]
        with pytest.raises(IndexError, match=f"there is no row {row} among 1"):
            columns.headers(row)


def test_columns_end_behind_the_row_that_reaches_the_limit() -> None:
    views = [BatchView(batch(b"".join(record(number, b"", b"x" * 40) for number in range(10)), count=10))]
    assert [len(one) for one in read_columns(views, max_bytes=100)] == [3, 3, 3, 1]
    assert [len(one) for one in read_columns(views, max_rows=4)] == [4, 4, 2]


@pytest.mark.parametrize(("max_rows", "max_bytes"), [(0, 1), (1, 0), (1, 1 << 31), (1 << 31, 1)])
def test_limits_that_make_no_sense(max_rows: int, max_bytes: int) -> None:
    with pytest.raises(ValueError, match="max_rows and max_bytes must be from 1 to"):
        list(read_columns([], max_rows=max_rows, max_bytes=max_bytes))


def test_a_header_name_that_is_no_text_is_shown_with_escapes() -> None:
    data = batch(record(headers=varint(2) + sized(b"\xc3") + sized(b"\xa9") + sized("é".encode()) + sized(None)))
    (columns,) = read_columns([BatchView(data)])
    assert columns.headers(0) == [("\\xc3", b"\xa9"), ("é", None)]
    assert columns.header_keys.data.decode() == "\\xc3é"


HOSTILE = {
    "more records than there are": (batch(record(), count=2), ErrorCode.INVALID_RECORD),
    "two thousand million records": (batch(record(), count=2**31 - 1), ErrorCode.INVALID_RECORD),
    "fewer records than none": (batch(record(), count=-1, last_offset_delta=0), ErrorCode.INVALID_RECORD),
    "bytes behind the last record": (batch(record() + b"x"), ErrorCode.INVALID_RECORD),
    "a value longer than its batch": (batch(record(length=2**31 - 1)), ErrorCode.INVALID_RECORD),
    "headers without end": (batch(record(headers=varint(2**31 - 1))), ErrorCode.INVALID_RECORD),
    "an offset beyond 64 bits": (
        batch(record(offset_delta=1), base_offset=2**62, last_offset_delta=0),
        ErrorCode.CORRUPT_MESSAGE,
    ),
    "a wrong checksum": (batch(record(), crc=1), ErrorCode.CORRUPT_MESSAGE),
    "no such codec": (batch(record(), attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "no such stream": (batch(record(), attributes=int(Codec.ZSTD)), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize(("data", "code"), HOSTILE.values(), ids=HOSTILE)
def test_a_lie_is_an_error(data: bytes, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        list(read_columns([BatchView(data)], end_offset=2**63 - 1))
    assert caught.value.code is code


def test_a_batch_that_is_cut_off() -> None:
    data = batch(record())
    with pytest.raises(KafkaError) as caught:
        list(read_columns([BatchView(data[:-1])]))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_memory_is_bounded_by_the_columns_and_not_by_the_batch() -> None:
    """Records and headers of the smallest size, which take more room in columns than in their batch."""
    row = record(0, None, None, headers=varint(100) + (sized(b"") + sized(None)) * 100)
    count = 2_000_000 // len(row)
    data = batch(compress(Codec.ZSTD, row * count), count=count, attributes=int(Codec.ZSTD))
    found = 0
    tracemalloc.start()
    try:
        for columns in read_columns([BatchView(data)], max_bytes=50_000):
            found += len(columns)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == count
    assert peak < 3 * 2_000_000
