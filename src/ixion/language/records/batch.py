"""Reads a record batch in place: the header's fields by name, the records one by one.

    view = BatchView(data, position)
    if view.is_complete and view.crc_is_valid():
        for record in view:
            print(record.offset, record.key, record.value)

The constructor checks only what it needs to read the header: 61 bytes, magic 2, a length of at least 49. Messages of
magic 0 and 1 get an error that names their format. `crc_is_valid()` checks the CRC; iteration raises at the first bad
record; `validate` checks everything. See `layout` for the fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be

from ixion._native import i64, mypyc_attr
from ixion.language.records.compression import CODECS, DEFAULT_LIMITS, Codec, InflateLimits, inflate, no_such_codec
from ixion.language.records.crc import crc32c
from ixion.language.records.faults import check_magic, corrupt, invalid
from ixion.language.records.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_LENGTH,
    CODEC_MASK,
    CONTROL_BIT,
    COUNT,
    CRC,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAX_TIMESTAMP,
    MIN_BATCH_LENGTH,
    NO_SEQUENCE,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS,
    TRANSACTIONAL_BIT,
    Buffer,
    add_to_sequence,
)
from ixion.language.records.record import Record
from ixion.language.records.walker import Walker


class TimestampType(IntEnum):
    """Which clock gave the timestamps: the producer's, or the broker's at the append."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


CREATE_TIME: Final = TimestampType.CREATE_TIME
LOG_APPEND_TIME: Final = TimestampType.LOG_APPEND_TIME

SMALL: Final = 4096


@final
@mypyc_attr(acyclic=True)
class BatchView:
    """One batch inside a buffer.

    In `bytes` every field is read in place. Of a bytearray or memoryview the constructor copies the header (61 bytes),
    so the view does not see later patches. The records are copied only when they are walked.
    """

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        self.buffer = buffer
        self.position: i64 = position
        # Bytes that contain the header, and its index in them.
        if isinstance(buffer, bytes):
            self._header = buffer
            self._at: i64 = position
        else:
            self._header = bytes(buffer[position : position + HEADER_SIZE])
            self._at = 0
        header = self._header
        at: i64 = self._at
        left: i64 = len(header) - at
        if at < 0 or left < HEADER_SIZE:
            if at >= 0 and left > MAGIC:
                check_magic(header[at + MAGIC])
            raise corrupt(f"a batch header has {HEADER_SIZE} bytes; only {max(left, 0)} are left")
        if header[at + MAGIC] != 2:
            check_magic(header[at + MAGIC])
        self.batch_length: i64 = i64(read_i32_be(header, at + BATCH_LENGTH))
        if self.batch_length < MIN_BATCH_LENGTH:
            raise corrupt(f"a batch length of {self.batch_length} is below the {MIN_BATCH_LENGTH} bytes of the header")

    @property
    def size_in_bytes(self) -> i64:
        return LOG_OVERHEAD + self.batch_length

    @property
    def is_complete(self) -> bool:
        """False if the buffer ends before the batch does (a torn tail, or only the header was read)."""
        return self.position + self.size_in_bytes <= len(self.buffer)

    @property
    def base_offset(self) -> i64:
        return read_i64_be(self._header, self._at + BASE_OFFSET)

    @property
    def leader_epoch(self) -> i64:
        return i64(read_i32_be(self._header, self._at + LEADER_EPOCH))

    @property
    def magic(self) -> i64:
        return i64(self._header[self._at + MAGIC])

    @property
    def crc(self) -> i64:
        return i64(read_i32_be(self._header, self._at + CRC)) & 0xFFFFFFFF

    @property
    def attributes(self) -> i64:
        """All 16 bits, as a number from 0 to 65535."""
        return i64(read_i16_be(self._header, self._at + ATTRIBUTES)) & 0xFFFF

    @property
    def codec_id(self) -> i64:
        return self.attributes & CODEC_MASK

    @property
    def codec(self) -> Codec:
        """The codec of the records; KafkaError (UNSUPPORTED_COMPRESSION_TYPE) for the unused ids 5 to 7."""
        if self.codec_id >= len(CODECS):
            raise no_such_codec(self.codec_id)
        return CODECS[self.codec_id]

    @property
    def timestamp_type(self) -> TimestampType:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def last_offset_delta(self) -> i64:
        return i64(read_i32_be(self._header, self._at + LAST_OFFSET_DELTA))

    @property
    def last_offset(self) -> i64:
        """The last offset of the batch as it was produced; compaction may have removed the record that had it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> i64:
        return self.last_offset + 1

    @property
    def base_timestamp(self) -> i64:
        """The time to which the timestamp deltas are added; the delete horizon if `has_delete_horizon`."""
        return read_i64_be(self._header, self._at + BASE_TIMESTAMP)

    @property
    def max_timestamp(self) -> i64:
        return read_i64_be(self._header, self._at + MAX_TIMESTAMP)

    @property
    def producer_id(self) -> i64:
        return read_i64_be(self._header, self._at + PRODUCER_ID)

    @property
    def producer_epoch(self) -> i64:
        return i64(read_i16_be(self._header, self._at + PRODUCER_EPOCH))

    @property
    def base_sequence(self) -> i64:
        return i64(read_i32_be(self._header, self._at + BASE_SEQUENCE))

    @property
    def last_sequence(self) -> i64:
        """-1 if the batch has no sequence. Wraps from 2**31 - 1 to 0."""
        base = self.base_sequence
        return NO_SEQUENCE if base == NO_SEQUENCE else add_to_sequence(base, self.last_offset_delta)

    @property
    def count(self) -> i64:
        return i64(read_i32_be(self._header, self._at + COUNT))

    def crc_is_valid(self) -> bool:
        """Also False for an incomplete batch."""
        if not self.is_complete:
            return False
        start: i64 = self.position + ATTRIBUTES
        end: i64 = self.position + self.size_in_bytes
        buffer = self.buffer
        # Copying a few kilobytes costs less than making two memoryviews.
        if isinstance(buffer, bytes) and end - start <= SMALL:
            return crc32c(buffer[start:end], 0) == self.crc
        return crc32c(memoryview(buffer)[start:end], 0) == self.crc

    def as_view(self) -> memoryview:
        """The whole batch without a copy."""
        self._require_complete()
        return memoryview(self.buffer)[self.position : self.position + self.size_in_bytes]

    def payload(self) -> memoryview:
        """The records as they are stored (compressed if a codec is set), without a copy."""
        self._require_complete()
        return memoryview(self.buffer)[self.position + RECORDS : self.position + self.size_in_bytes]

    def walker(self, limits: InflateLimits = DEFAULT_LIMITS) -> Walker:
        """A walker over the records; compressed records are inflated within `limits`."""
        self._require_complete()
        if self.count == 0:
            return Walker(b"", 0, 0)  # compaction left only the header; the codec does not matter
        if self.codec_id != 0:
            inflated = inflate(self.codec, self.payload(), limits)
            return Walker(inflated, 0, len(inflated))
        buffer = self.buffer
        if isinstance(buffer, bytes):
            return Walker(buffer, self.position + RECORDS, self.position + self.size_in_bytes)
        data = bytes(self.payload())
        return Walker(data, 0, len(data))

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, limits: InflateLimits = DEFAULT_LIMITS) -> Iterator[Record]:
        """Yield the records in order; raise KafkaError at the first malformed one."""
        return walk(self, self.walker(limits))

    def _require_complete(self) -> None:
        if not self.is_complete:
            held = len(self.buffer) - self.position
            raise corrupt(
                f"a batch of {self.size_in_bytes} bytes at offset {self.base_offset} is cut after {held} bytes"
            )

    def __repr__(self) -> str:
        return f"BatchView(offsets {self.base_offset}..{self.last_offset}, {self.count} records, codec {self.codec_id})"


def walk(batch: BatchView, walker: Walker) -> Iterator[Record]:
    """A generator rather than an iterator class: compiled code ends it without building a StopIteration traceback."""
    left: i64 = batch.count
    base_offset: i64 = batch.base_offset
    base_timestamp: i64 = batch.base_timestamp
    append_timestamp: i64 = batch.max_timestamp
    is_append_time = batch.attributes & LOG_APPEND_TIME_BIT != 0
    while left > 0:
        left -= 1
        walker.step()
        timestamp: i64 = append_timestamp if is_append_time else walker.timestamp(base_timestamp)
        yield Record(walker, base_offset + walker.offset_delta, timestamp)
    if left < 0:
        raise invalid(f"a batch of {left} records")
    if walker.position != walker.end:
        raise invalid(f"{walker.end - walker.position} bytes follow the last record of a batch")
