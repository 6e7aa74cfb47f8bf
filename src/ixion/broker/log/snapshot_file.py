"""`.snapshot`: the producer state at an offset, so that a start need not read the whole log.

    version i16 = 1 | crc32c u32 of all that follows | count i32 | entries of 46 bytes:
    producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64,
    coordinator epoch i32, first offset of the open transaction i64 (-1: none)

Of the five batches of a producer only the last has a place in an entry; what else we know follows the entries (see
`snapshot_trailer`). A snapshot is named after the offset up to which it is
complete. It is taken when a segment is sealed (then it has the name of the next segment) and at a clean close.
"""

from __future__ import annotations

import struct
from typing import Final

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.broker.log.producer_entry import BatchTrace, ProducerEntry
from ixion.broker.log.snapshot_trailer import decode_trailer, encode_trailer
from ixion.language.records.crc import crc32c

VERSION: Final = 1

_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


def encode_snapshot(entries: list[ProducerEntry]) -> bytes:
    parts = [_COUNT.pack(len(entries))]
    for entry in entries:
        last = entry.batches[-1] if entry.batches else None
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence if last else -1,
                last.last_offset if last else -1,
                last.offset_delta if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.txn_first_offset,
            )
        )
    parts.append(encode_trailer(entries))
    body = b"".join(parts)
    return _HEAD.pack(VERSION, crc32c(body, 0)) + body


def decode_snapshot(path: str, data: bytes) -> list[ProducerEntry]:
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptFileError(path, f"it has {len(data)} bytes, too few for a snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptFileError(path, f"version {version} is unknown")
    body = data[_HEAD.size :]
    if crc32c(body, 0) != crc:
        raise CorruptFileError(path, "its checksum does not match")
    (count,) = _COUNT.unpack_from(body)
    end = _COUNT.size + count * _ENTRY.size
    if count < 0 or len(body) < end:
        raise CorruptFileError(path, f"{len(body)} bytes are not {count} entries")
    entries: list[ProducerEntry] = []
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn in _ENTRY.iter_unpack(
        body[_COUNT.size : end]
    ):
        entry = ProducerEntry(producer_id, epoch)
        if offset >= 0:
            entry.batches.append(BatchTrace(sequence, offset, delta, timestamp))
        entry.last_timestamp = entry.used_ms = timestamp
        entry.coordinator_epoch = coordinator_epoch
        entry.txn_first_offset = txn if txn >= 0 else -1
        entries.append(entry)
    if not decode_trailer(body[end:], entries):
        raise CorruptFileError(path, "the bytes after its entries cannot be read")
    return entries


def read_snapshot(files: Files, path: str) -> list[ProducerEntry]:
    return decode_snapshot(path, files.read_file(path))


def write_snapshot(files: Files, path: str, entries: list[ProducerEntry]) -> None:
    files.replace_content(path, encode_snapshot(entries), False)
