"""Record batches as columns: every offset in one buffer, every value in another, and no object for a record.

    for columns in read_columns(batches, start_offset=17):
        columns.offsets[0], columns.keys[0], columns.values[0]     # by row
        columns.values.data, columns.values.ends                   # as buffers

The buffers are laid out as Arrow wants them, little-endian, so that pyarrow takes them over as they are:

    offsets, timestamps   i64 per row            timestamp_types   i32 per row: 0 create time, 1 log append time
    keys, values          `data`: the bytes of all rows one after the other; `ends`: i32, one more than rows, where each
                          begins and ends; `validity`: a bit per row, lowest first, 0 for null (empty without nulls)
    headers               `header_ends`: i32, one more than rows, into `header_keys` and `header_values`

Example, the records (offset 5, key "a", value null) and (offset 6, key "bc", value ""): offsets 5 6; keys.data "abc",
keys.ends 0 1 3; values.data "", values.ends 0 0 0, values.validity 0b10.

Bytes are copied late, and once. If all rows of a column lie in one `bytes` object (uncompressed batches of one fetch),
the column refers to it and holds two i32 for each row, its start and its end:

    source  ..a...bc.....    spans  2 3 6 8    rows "a", "bc"

pyarrow gathers such rows in one pass; `data` and `ends` gather them when they are first read. Rows of several objects
(compressed batches) are copied as they are added.

Columns end at `max_rows` rows, or after the record that reaches `max_bytes` of keys, values and headers, even in the
middle of a batch. So memory is bounded by `max_bytes`, one record, one inflated batch and the source, whatever a
batch claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, write_i32_le, write_i64_le

from ixion._native import i32, i64, mypyc_attr, u8
from ixion.language.records.batch import BatchView
from ixion.language.records.compression import DEFAULT_LIMITS, InflateLimits
from ixion.language.records.faults import corrupt, invalid
from ixion.language.records.layout import LOG_APPEND_TIME_BIT
from ixion.language.records.walker import FAR, Walker

MAX_ROWS: Final = 128 * 1024
MAX_BYTES: Final = 16 * 1024 * 1024
LARGEST_BYTES: Final = 1 << 30  # an end is an i32, and the last record may go beyond the limit
MAX_I32: Final = (1 << 31) - 1


@final
@mypyc_attr(acyclic=True)
class BinaryColumn:
    """Bytes or null per row."""

    def __init__(
        self, count: i64, source: bytes, spans: bytes, is_dense: bool, validity: bytes, null_count: i64
    ) -> None:
        self.count: i64 = count
        self.source = source
        # Of each row the start and the end in `source`; of a dense column only the ends, with a 0 before them.
        self.spans = spans
        self.is_dense = is_dense  # whether `source` holds the rows and nothing else
        self.validity = validity  # empty if there are no nulls
        self.null_count: i64 = null_count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: i64) -> bytes | None:
        if not 0 <= row < self.count:
            raise IndexError(f"there is no row {row} among {self.count}")
        if self.null_count > 0 and not i64(self.validity[row >> 3]) >> (row & 7) & 1:
            return None
        at: i64 = 4 * row if self.is_dense else 8 * row
        return self.source[i64(read_i32_le(self.spans, at)) : i64(read_i32_le(self.spans, at + 4))]

    @property
    def data(self) -> bytes:
        self._make_dense()
        return self.source

    @property
    def ends(self) -> bytes:
        self._make_dense()
        return self.spans

    def _make_dense(self) -> None:
        if not self.is_dense:
            data, ends = gather(self.source, self.spans)
            self.source = data.getvalue()
            self.spans = ends.getvalue()
            self.is_dense = True


def gather(source: bytes, spans: bytes) -> tuple[BytesWriter, BytesWriter]:
    """The bytes of all spans, and where each ends."""
    data = BytesWriter()
    ends = BytesWriter()
    write_i32_le(ends, 0)
    at: i64 = 0
    while at < len(spans):
        start = i64(read_i32_le(spans, at))
        end = i64(read_i32_le(spans, at + 4))
        if start < end:
            data.write(source[start:end])
        write_i32_le(ends, i32(len(data)))
        at += 8
    return data, ends


@final
@mypyc_attr(acyclic=True)
class BinaryWriter:
    """Builds a `BinaryColumn`."""

    def __init__(self) -> None:
        self._source = b""  # where all rows so far lie, in order, unless the column is dense
        self._spans = BytesWriter()
        self._end: i64 = 0  # of the last row
        self._is_dense = False
        self._data = BytesWriter()  # the rows of a dense column
        self._validity = BytesWriter()
        self._bits: i64 = 0  # validity bits of the rows after the last whole byte
        self.count: i64 = 0
        self.null_count: i64 = 0
        self.size: i64 = 0  # bytes of all rows

    def add(self, data: bytes, start: i64, size: i64) -> None:
        """Add the row ``data[start:start + size]``, or null if the size is negative."""
        if size < 0:
            self.null_count += 1
            size = 0
        else:
            self._bits |= i64(1) << (self.count & 7)
        if size > 0:
            if not self._is_dense and (data is not self._source or start < self._end or start + size > MAX_I32):
                self._change_source(data, start, size)
            if self._is_dense:
                self._data.write(data[start : start + size])
                self._end += size
            else:
                self._end = start + size
            self.size += size
        if not self._is_dense:
            write_i32_le(self._spans, i32(self._end - size))
        write_i32_le(self._spans, i32(self._end))
        self.count += 1
        if self.count & 7 == 0:
            self._validity.append(u8(self._bits))
            self._bits = 0

    def _change_source(self, data: bytes, start: i64, size: i64) -> None:
        """Refer to `data` from now on if no row has bytes yet; else copy the rows."""
        if self.size == 0 and start + size <= MAX_I32:
            self._source = data
            return
        self._data, self._spans = gather(self._source, self._spans.getvalue())
        self._source = b""
        self._end = self.size
        self._is_dense = True

    def finish(self) -> BinaryColumn:
        if self.null_count > 0 and self.count & 7:
            self._validity.append(u8(self._bits))
        validity = self._validity.getvalue() if self.null_count > 0 else b""
        if self._is_dense:
            source, spans = self._data.getvalue(), self._spans.getvalue()
        elif self.size == 0:
            source, spans = b"", bytes(4 * int(self.count) + 4)
        else:
            source, spans = self._source, self._spans.getvalue()
        is_dense = self._is_dense or self.size == 0
        return BinaryColumn(self.count, source, spans, is_dense, validity, self.null_count)


@final
class Columns:
    """Rows of one partition in the order of their offsets; see the module for the buffers."""

    def __init__(self, writer: ColumnWriter) -> None:
        self.count: i64 = writer.count
        self.offset_data = writer.offsets.getvalue()
        self.timestamp_data = writer.timestamps.getvalue()
        self.timestamp_type_data = writer.timestamp_types.getvalue()
        self.keys = writer.keys.finish()
        self.values = writer.values.finish()
        self.header_ends = writer.header_ends.getvalue()
        self.header_keys = writer.header_keys.finish()
        self.header_values = writer.header_values.finish()

    def __len__(self) -> int:
        return self.count

    @property
    def offsets(self) -> memoryview:
        """The offsets as integers: ``columns.offsets[row]``."""
        return memoryview(self.offset_data).cast("q")

    @property
    def timestamps(self) -> memoryview:
        """Milliseconds since 1970 as integers; -1 for none."""
        return memoryview(self.timestamp_data).cast("q")

    @property
    def timestamp_types(self) -> memoryview:
        return memoryview(self.timestamp_type_data).cast("i")

    def headers(self, row: i64) -> list[tuple[str, bytes | None]]:
        """The headers of a row, in the form of `Record.headers`."""
        if not 0 <= row < self.count:
            raise IndexError(f"there is no row {row} among {self.count}")
        at = i64(read_i32_le(self.header_ends, 4 * row))
        end = i64(read_i32_le(self.header_ends, 4 * row + 4))
        found: list[tuple[str, bytes | None]] = []
        while at < end:
            name = self.header_keys[at]
            assert name is not None, "a header has a key"
            found.append((name.decode(), self.header_values[at]))
            at += 1
        return found


@final
@mypyc_attr(acyclic=True)
class ColumnWriter:
    """Builds `Columns` batch by batch."""

    def __init__(self, max_rows: i64, max_bytes: i64) -> None:
        self._max_rows: i64 = max_rows
        self._max_bytes: i64 = max_bytes
        self.count: i64 = 0
        self.offsets = BytesWriter()
        self.timestamps = BytesWriter()
        self.timestamp_types = BytesWriter()
        self.keys = BinaryWriter()
        self.values = BinaryWriter()
        self.header_ends = BytesWriter()
        write_i32_le(self.header_ends, 0)
        self.header_keys = BinaryWriter()
        self.header_values = BinaryWriter()

    @property
    def is_full(self) -> bool:
        if self.count >= self._max_rows:
            return True
        size: i64 = self.keys.size + self.values.size + self.header_keys.size + self.header_values.size
        # An empty header takes memory too: two ends.
        return size + 8 * self.header_keys.count >= self._max_bytes

    def take(self, rest: RestOfBatch) -> bool:
        """Add rows until the batch ends or the columns are full. Returns whether the batch has ended."""
        walker = rest.walker
        start_offset: i64 = rest.start_offset
        end_offset: i64 = rest.end_offset
        while rest.left > 0:
            if self.is_full:
                return False
            rest.left -= 1
            walker.step()
            offset: i64 = rest.base_offset + walker.offset_delta
            if offset < start_offset or offset >= end_offset:
                continue
            timestamp: i64 = rest.append_timestamp if rest.is_append_time else walker.timestamp(rest.base_timestamp)
            write_i64_le(self.offsets, offset)
            write_i64_le(self.timestamps, timestamp)
            write_i32_le(self.timestamp_types, 1 if rest.is_append_time else 0)
            data = walker.data
            self.keys.add(data, walker.key_start, walker.key_size)
            self.values.add(data, walker.value_start, walker.value_size)
            if walker.header_count > 0:
                self._add_headers(walker)
            write_i32_le(self.header_ends, i32(self.header_keys.count))
            self.count += 1
        if walker.position != walker.end:
            raise invalid(f"{walker.end - walker.position} bytes follow the last record of a batch")
        return True

    def _add_headers(self, walker: Walker) -> None:
        """Add the headers of the last record, which `step` has found well-formed."""
        end: i64 = walker.position
        walker.position = walker.header_position
        left: i64 = walker.header_count
        data = walker.data
        while left > 0:
            left -= 1
            size: i64 = walker.varint(end)
            name = data[walker.position : walker.position + size]
            if not name.isascii():
                name = name.decode("utf-8", "backslashreplace").encode()
            self.header_keys.add(name, 0, len(name))
            walker.position += size
            size = walker.varint(end)
            self.header_values.add(data, walker.position, size)
            if size > 0:
                walker.position += size
        walker.position = end


@final
@mypyc_attr(acyclic=True)
class RestOfBatch:
    """The records of a batch that are not in columns yet. Only offsets from `start_offset` up to, but not including,
    `end_offset` are wanted."""

    def __init__(self, batch: BatchView, start_offset: i64, end_offset: i64, limits: InflateLimits) -> None:
        self.start_offset: i64 = start_offset
        self.end_offset: i64 = end_offset
        self.left: i64 = batch.count
        self.base_offset: i64 = batch.base_offset
        self.base_timestamp: i64 = batch.base_timestamp
        self.append_timestamp: i64 = batch.max_timestamp
        self.is_append_time = batch.attributes & LOG_APPEND_TIME_BIT != 0
        if self.left < 0:
            raise invalid(f"a batch of {self.left} records")
        if not 0 <= self.base_offset < FAR:
            raise corrupt(f"a batch starts at the impossible offset {self.base_offset}")
        self.walker = batch.walker(limits)


def read_columns(
    batches: Iterable[BatchView],
    start_offset: int = 0,
    end_offset: int = FAR,
    *,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    check_crcs: bool = True,
    limits: InflateLimits = DEFAULT_LIMITS,
) -> Iterator[Columns]:
    """Yield the records from `start_offset` up to, but not including, `end_offset`, in columns of at least one row.

    The caller leaves out control batches and aborted transactions. The first damaged batch raises KafkaError; rows
    not yielded before it are lost.
    """
    if not 0 < max_rows <= LARGEST_BYTES or not 0 < max_bytes <= LARGEST_BYTES:
        raise ValueError(f"max_rows and max_bytes must be from 1 to {LARGEST_BYTES}, not {max_rows} and {max_bytes}")
    writer = ColumnWriter(max_rows, max_bytes)
    for batch in batches:
        if batch.last_offset < start_offset or batch.base_offset >= end_offset:
            continue
        if check_crcs and not batch.crc_is_valid():
            raise corrupt(f"the batch at offset {batch.base_offset} has a wrong checksum")
        rest = RestOfBatch(batch, start_offset, end_offset, limits)
        while not writer.take(rest):
            full = Columns(writer)
            writer = ColumnWriter(max_rows, max_bytes)
            yield full
    if writer.count > 0:
        yield Columns(writer)
