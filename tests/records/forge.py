"""Makes batches that no honest builder makes: any number in any field, and a CRC that is right unless it is given."""

from __future__ import annotations

import struct

from ixion.language.records.crc import crc32c
from ixion.language.records.layout import HEADER_SIZE


def varint(number: int) -> bytes:
    """Zigzag, any width."""
    left = (number << 1) if number >= 0 else ((-number << 1) - 1)
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    made.append(left)
    return bytes(made)


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    offset_delta: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: bytes = b"\0",
    timestamp_delta: int = 0,
    length: int | None = None,
) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + sized(key) + sized(value) + headers
    return varint(len(body) if length is None else length) + body


def batch(
    records: bytes,
    *,
    count: int = 1,
    last_offset_delta: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    attributes: int = 0,
    base_timestamp: int = 0,
    max_timestamp: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    length: int | None = None,
    crc: int | None = None,
) -> bytes:
    inside = struct.pack(
        ">Hiqqqhii",
        attributes,
        count - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    body = inside + records
    outside = struct.pack(
        ">qiibI",
        base_offset,
        HEADER_SIZE - 12 + len(records) if length is None else length,
        leader_epoch,
        magic,
        crc32c(body, 0) if crc is None else crc,
    )
    return outside + body
