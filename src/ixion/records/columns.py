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

Columns end at `max_rows` rows, or after the record that reaches `max_bytes` of keys, values and headers, even in the
middle of a batch. So memory is bounded by `max_bytes`, one record and one inflated batch, whatever a batch claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, final

from librt.strings import BytesWriter, read_i32_le, write_i32_le, write_i64_le

from ixion._native import i32, i64, mypyc_attr, u8
from ixion.records.batch import BatchView
from ixion.records.compression import DEFAULT_LIMITS, InflateLimits
from ixion.records.faults import corrupt, invalid
from ixion.records.layout import LOG_APPEND_TIME_BIT
from ixion.records.walker import FAR, Walker

MAX_ROWS: Final = 128 * 1024
MAX_BYTES: Final = 16 * 1024 * 1024
LARGEST_BYTES: Final = 1 << 30  # an end is an i32, and the last record may go beyond the limit


@final
@mypyc_attr(acyclic=True)
class BinaryColumn:
    """Bytes or null per row."""

    def __init__(self, count: i64, data: bytes, ends: bytes, validity: bytes, null_count: i64) -> None:
        self.count: i64 = count
        self.data = data
        self.ends = ends
        self.validity = validity  # empty if there are no nulls
        self.null_count: i64 = null_count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: i64) -> bytes | None:
        if not 0 <= row < self.count:
            raise IndexError(f"there is no row {row} among {self.count}")
        if self.null_count > 0 and not i64(self.validity[row >> 3]) >> (row & 7) & 1:
            return None
        start = i64(read_i32_le(self.ends, 4 * row))
        return self.data[start : i64(read_i32_le(self.ends, 4 * row + 4))]


@final
@mypyc_attr(acyclic=True)
class BinaryWriter:
    """Builds a `BinaryColumn`."""

    def __init__(self) -> None:
        self._data = BytesWriter()
        self._ends = BytesWriter()
        write_i32_le(self._ends, 0)
        self._validity = BytesWriter()
        self._bits: i64 = 0  # validity bits of the rows after the last whole byte
        self.count: i64 = 0
        self.null_count: i64 = 0

    @property
    def size(self) -> i64:
        return len(self._data)

    def add(self, data: bytes, start: i64, size: i64) -> None:
        """Add the row ``data[start:start + size]``, or null if the size is negative."""
        if size < 0:
            self.null_count += 1
        else:
            self._bits |= i64(1) << (self.count & 7)
            if size > 0:
                self._data.write(data[start : start + size])
        write_i32_le(self._ends, i32(len(self._data)))
        self.count += 1
        if self.count & 7 == 0:
            self._validity.append(u8(self._bits))
            self._bits = 0

    def finish(self) -> BinaryColumn:
        if self.null_count > 0 and self.count & 7:
            self._validity.append(u8(self._bits))
        validity = self._validity.getvalue() if self.null_count > 0 else b""
        return BinaryColumn(self.count, self._data.getvalue(), self._ends.getvalue(), validity, self.null_count)


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
