"""Builds a record batch record by record, and counts its bytes as it grows.

    builder = BatchBuilder(max_bytes=16_384, codec=Codec.LZ4)
    while builder.append(key, value, timestamp=now_ms):
        ...
    data = builder.build()

`size_in_bytes` counts bytes before compression. `append` returns False and changes nothing if the record would take the
batch beyond `max_bytes`. It always takes the first record: the caller decides whether a single record is too large. One
builder makes one batch; it is not thread-safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be

from ixion._native import i16, i32, i64, mypyc_attr, u8
from ixion.language.records.batch import CREATE_TIME, LOG_APPEND_TIME, TimestampType
from ixion.language.records.compression import Codec, compress
from ixion.language.records.crc import crc32c
from ixion.language.records.layout import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_V2,
    MAX_I32,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
)
from ixion.language.records.record import Record
from ixion.language.records.walker import FAR, MAX_I64, MIN_I64

TWO_TO_THE_32: Final = 1 << 32
# The buffer of a builder is emptied at this size; a value of this size is not copied into it.
PIECE_SIZE: Final = 16 * 1024

# Buffers of finished builders, reused by new ones: a buffer that has grown needs no further allocation.
SPARE: Final[list[BytesWriter]] = []
MOST_SPARE: Final = 8
MOST_KEPT: Final = 4 * PIECE_SIZE  # a buffer that has held more bytes is not reused

NO_HEADERS: Final = b"\0"

Headers = Sequence[tuple[str, bytes | None]]


@final
@mypyc_attr(acyclic=True)
class BatchBuilder:
    """See the module for an example."""

    def __init__(
        self,
        *,
        max_bytes: int = MAX_I32,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        base_offset: int = 0,
        leader_epoch: int = NO_LEADER_EPOCH,
        timestamp_type: TimestampType = CREATE_TIME,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        delete_horizon: int | None = None,
    ) -> None:
        """`delete_horizon` (milliseconds) replaces the base timestamp; timestamp deltas then count from it."""
        # Records are written into a small buffer that stays in the processor's cache and is emptied into `_pieces`.
        self._writer = spare_writer()
        self._pieces: list[bytes] = []
        self._pieces_size: i64 = 0
        self.max_bytes: i64 = max_bytes
        self.count: i64 = 0
        self.base_offset: i64 = base_offset
        self.last_offset: i64 = base_offset - 1
        self.base_timestamp: i64 = NO_TIMESTAMP if delete_horizon is None else delete_horizon
        self.max_timestamp: i64 = NO_TIMESTAMP
        self.offset_of_max_timestamp: i64 = -1
        self._has_base_timestamp = delete_horizon is not None
        self._codec = codec
        self._level = level
        self._leader_epoch: i32 = i32(leader_epoch)
        self._producer_id: i64 = i64(producer_id)
        self._producer_epoch: i16 = i16(producer_epoch)
        self._base_sequence: i32 = i32(base_sequence)
        self._attributes: i64 = (
            int(codec)
            | (LOG_APPEND_TIME_BIT if timestamp_type == LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
            | (0 if delete_horizon is None else DELETE_HORIZON_BIT)
        )

    @property
    def size_in_bytes(self) -> i64:
        """The size of the batch with the records so far, before compression."""
        return HEADER_SIZE + self._pieces_size + len(self._writer)

    def append(
        self, key: bytes | None, value: bytes | None, headers: Headers = (), timestamp: i64 = NO_TIMESTAMP
    ) -> bool:
        """Add a record at the next offset; False if it does not fit. `timestamp` is in milliseconds, -1 for none."""
        encoded = encode_headers(headers) if headers else NO_HEADERS
        return self._append(self.last_offset + 1, key, value, encoded, timestamp)

    def append_at(self, offset: i64, key: bytes | None, value: bytes | None, headers: Headers, timestamp: i64) -> bool:
        """Add a record at the given offset, above the last one. Gaps are allowed, as compaction leaves them."""
        return self._append(offset, key, value, encode_headers(headers) if headers else NO_HEADERS, timestamp)

    def append_encoded(
        self, offset: i64, key: bytes | None, value: bytes | None, headers: bytes, timestamp: i64
    ) -> bool:
        """As `append_at`, with headers that `encode_headers` has encoded."""
        return self._append(offset, key, value, headers, timestamp)

    def append_copy(self, record: Record) -> bool:
        """Copy a record of another batch, at its own offset, with its headers byte for byte."""
        if record.header_count == 0:
            headers = NO_HEADERS
        else:
            headers = encode_count(record.header_count) + record.stored_headers()
        return self._append(record.offset, record.key, record.value, headers, record.timestamp)

    def _append(self, offset: i64, key: bytes | None, value: bytes | None, headers: bytes, timestamp: i64) -> bool:
        if offset <= self.last_offset:
            raise ValueError(f"offset {offset} must be above the last offset {self.last_offset}")
        offset_delta: i64 = offset - self.base_offset
        if offset_delta > MAX_I32:
            raise ValueError(f"offset {offset} is too far from the base offset {self.base_offset}")
        base_timestamp: i64 = self.base_timestamp if self._has_base_timestamp else timestamp
        if not (-FAR < timestamp < FAR and -FAR < base_timestamp < FAR):
            check_distance(timestamp, base_timestamp)
        timestamp_delta: i64 = timestamp - base_timestamp
        key_size: i64 = -1 if key is None else len(key)
        value_size: i64 = -1 if value is None else len(value)
        size: i64 = (
            1
            + varint_size(timestamp_delta)
            + varint_size(offset_delta)
            + varint_size(key_size)
            + varint_size(value_size)
            + len(headers)
        )
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        writer = self._writer
        if self.size_in_bytes + size + varint_size(size) > self.max_bytes and self.count > 0:
            return False
        write_varint(writer, size)
        writer.append(0)
        write_varint(writer, timestamp_delta)
        write_varint(writer, offset_delta)
        write_varint(writer, key_size)
        if key is not None:
            writer.write(key)
        write_varint(writer, value_size)
        if value is not None:
            if value_size < PIECE_SIZE:
                writer.write(value)
            else:
                self._empty_writer()
                self._add_piece(value)
                writer = self._writer
        if len(headers) == 1:
            writer.append(0)
        else:
            writer.write(headers)
        if len(writer) >= PIECE_SIZE:
            self._empty_writer()
        if not self._has_base_timestamp:
            self.base_timestamp = timestamp
            self._has_base_timestamp = True
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.offset_of_max_timestamp = offset
        self.last_offset = offset
        self.count += 1
        return True

    def name_producer(self, producer_id: i64, producer_epoch: i64, base_sequence: i64) -> None:
        """Set the producer of a batch that got its producer only after the builder was made."""
        self._producer_id = producer_id
        self._producer_epoch = i16(producer_epoch)
        self._base_sequence = i32(base_sequence)

    def end(self) -> None:
        """Release the buffer for the next builder. Call it when no record follows."""
        self._empty_writer()
        if len(SPARE) < MOST_SPARE:
            SPARE.append(self._writer)
        self._writer = BytesWriter()

    def build(self) -> bytes:
        """The batch, ready to be sent or written."""
        self.end()
        pieces = self._pieces
        if self.count == 0:
            self._attributes &= ~CODEC_MASK  # compaction left only the header: nothing to compress
        if self._attributes & CODEC_MASK != 0:
            pieces = [compress(self._codec, b"".join(pieces), self._level)]
        inside = self._fields_inside_crc()
        crc = crc32c(inside, 0)
        length: i64 = HEADER_SIZE - LOG_OVERHEAD
        for piece in pieces:
            crc = crc32c(piece, crc)
            length += len(piece)
        writer = BytesWriter()
        write_i64_be(writer, self.base_offset)
        write_i32_be(writer, i32(length))
        write_i32_be(writer, self._leader_epoch)
        writer.append(MAGIC_V2)
        write_i32_be(writer, i32(crc - TWO_TO_THE_32 if crc > MAX_I32 else crc))
        writer.write(inside)
        return b"".join([writer.getvalue()] + pieces)

    def _fields_inside_crc(self) -> bytes:
        writer = BytesWriter()
        write_i16_be(writer, i16(self._attributes))
        write_i32_be(writer, i32(self.last_offset - self.base_offset))
        write_i64_be(writer, self.base_timestamp)
        write_i64_be(writer, self.max_timestamp)
        write_i64_be(writer, self._producer_id)
        write_i16_be(writer, self._producer_epoch)
        write_i32_be(writer, self._base_sequence)
        write_i32_be(writer, i32(self.count))
        return writer.getvalue()

    def _empty_writer(self) -> None:
        size: i64 = len(self._writer)
        if size > 0:
            self._add_piece(self._writer.getvalue())
            if size <= MOST_KEPT:
                self._writer.truncate(0)
            else:  # a large key or header made the buffer grow: do not keep it
                self._writer = BytesWriter()

    def _add_piece(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._pieces_size += len(piece)


def spare_writer() -> BytesWriter:
    try:
        try:
            return SPARE.pop() if SPARE else BytesWriter()
        except IndexError:  # another thread took it
            return BytesWriter()
    except IndexError:  # another thread was quicker
        return BytesWriter()


def check_distance(timestamp: int, base_timestamp: int) -> None:
    if not MIN_I64 <= timestamp - base_timestamp <= MAX_I64:
        raise ValueError(f"timestamp {timestamp} is too far from the base timestamp {base_timestamp}")


def encode_count(count: i64) -> bytes:
    writer = BytesWriter()
    write_varint(writer, count)
    return writer.getvalue()


def encode_headers(headers: Headers) -> bytes:
    """The header count, then the headers, as a record stores them."""
    writer = BytesWriter()
    write_varint(writer, len(headers))
    for name, value in headers:
        encoded = name.encode()
        write_varint(writer, len(encoded))
        writer.write(encoded)
        if value is None:
            write_varint(writer, -1)
        else:
            write_varint(writer, len(value))
            writer.write(value)
    return writer.getvalue()


def varint_size(value: i64) -> i64:
    """The size of a zigzag varint: 1 byte for -64 .. 63, 2 for -8192 .. 8191, at most 10."""
    left: i64 = ~value if value < 0 else value
    size: i64 = 1
    left >>= 6
    while left != 0:
        size += 1
        left >>= 7
    return size


def write_varint(writer: BytesWriter, value: i64) -> None:
    """A zigzag varint: seven bits per byte, lowest first."""
    if -64 <= value < 64:
        writer.append(u8(((value << 1) ^ (value >> 63)) & 0x7F))
        return
    negative: i64 = 1 if value < 0 else 0
    left: i64 = ~value if value < 0 else value
    byte: i64 = ((left & 0x3F) << 1) | negative
    left >>= 6
    while left != 0:
        writer.append(u8(byte | 0x80))
        byte = left & 0x7F
        left >>= 7
    writer.append(u8(byte))
