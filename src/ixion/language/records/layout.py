"""Where each field of a record batch (magic 2) lies, and the values that mean "none".

All numbers are big-endian and signed. The CRC-32C covers everything from the attributes to the end of the batch, so the
base offset and the leader epoch, which the broker writes, can change without a new checksum.

    0   base offset         i64
    8   batch length        i32   bytes that follow this field: 49 + the records
    12  leader epoch        i32
    16  magic               i8
    17  crc                 u32   over bytes 21 .. end
    21  attributes          i16   bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
    23  last offset delta   i32
    27  base timestamp      i64   the delete horizon instead when bit 6 is set
    35  max timestamp       i64
    43  producer id         i64
    51  producer epoch      i16
    53  base sequence       i32
    57  count               i32
    61  records, compressed as a whole when a codec is set

A record, its lengths and deltas being zigzag varints:

    length, attributes i8, timestamp delta, offset delta, key length (-1 = null), key, value length (-1 = null), value,
    header count, then per header: key length, key (UTF-8), value length (-1 = null), value
"""

from __future__ import annotations

from typing import Final, TypeAlias

# Types that may hold a batch. A view reads `bytes` in place; of the other two it copies the 61 bytes of the header.
Buffer: TypeAlias = bytes | bytearray | memoryview

BASE_OFFSET: Final = 0
BATCH_LENGTH: Final = 8
LEADER_EPOCH: Final = 12
MAGIC: Final = 16
CRC: Final = 17
ATTRIBUTES: Final = 21
LAST_OFFSET_DELTA: Final = 23
BASE_TIMESTAMP: Final = 27
MAX_TIMESTAMP: Final = 35
PRODUCER_ID: Final = 43
PRODUCER_EPOCH: Final = 51
BASE_SEQUENCE: Final = 53
COUNT: Final = 57
RECORDS: Final = 61

HEADER_SIZE: Final = 61
# The base offset and the batch length: the bytes to read to know how long a batch is.
LOG_OVERHEAD: Final = 12
# The smallest legal batch length: a header without records.
MIN_BATCH_LENGTH: Final = 49
# Up to and including the magic byte: the shortest prefix that tells an old message from a batch.
MAGIC_PREFIX: Final = 17
MAGIC_V2: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
KNOWN_ATTRIBUTES: Final = 0x7F

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

MAX_I32: Final = 0x7FFFFFFF
# Length, attributes, two deltas, two lengths and a header count, one byte each: no record is smaller.
MIN_RECORD_SIZE: Final = 7


def add_to_sequence(sequence: int, increment: int) -> int:
    """The sequence number `increment` records later; it wraps from 2**31 - 1 to 0, as Kafka's producers count."""
    return (sequence + increment) & MAX_I32


def is_transactional(records: Buffer) -> bool:
    """Whether the first batch of `records` belongs to a transaction."""
    return len(records) >= HEADER_SIZE and records[ATTRIBUTES + 1] & TRANSACTIONAL_BIT != 0
