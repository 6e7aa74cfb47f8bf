"""Changes header fields of a batch in place, in a bytearray or a writable memoryview.

The CRC covers timestamps and producer fields, so patches compute the CRC of the whole batch again. The caller must have
verified the old CRC first, or a damaged batch gets a valid one. (The append sets base offset and leader epoch, which
the CRC does not cover: `records.validate`.)
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ixion.language.records.batch import BatchView, TimestampType
from ixion.language.records.crc import crc32c
from ixion.language.records.layout import (
    ATTRIBUTES,
    CRC,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP,
    PRODUCER_ID,
)

I64: Final = Struct(">q")
I32: Final = Struct(">i")
U32: Final = Struct(">I")
U16: Final = Struct(">H")
PRODUCER: Final = Struct(">qhi")


def patch_max_timestamp(
    buffer: bytearray | memoryview, position: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """Set the timestamp type and the max timestamp; under LOG_APPEND_TIME every record has that timestamp.

    If both are already set so, this does nothing and computes no CRC.
    """
    view = BatchView(buffer, position)
    if view.timestamp_type == timestamp_type and view.max_timestamp == max_timestamp:
        return
    attributes = view.attributes & ~LOG_APPEND_TIME_BIT
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_BIT
    U16.pack_into(buffer, position + ATTRIBUTES, attributes)
    I64.pack_into(buffer, position + MAX_TIMESTAMP, max_timestamp)
    patch_crc(buffer, position)


def patch_producer(
    buffer: bytearray | memoryview, position: int, producer_id: int, producer_epoch: int, base_sequence: int
) -> None:
    PRODUCER.pack_into(buffer, position + PRODUCER_ID, producer_id, producer_epoch, base_sequence)
    patch_crc(buffer, position)


def patch_crc(buffer: bytearray | memoryview, position: int) -> None:
    """Compute the CRC of the batch and write it."""
    with BatchView(buffer, position).as_view() as batch:
        U32.pack_into(buffer, position + CRC, crc32c(batch[ATTRIBUTES:], 0))
