"""A batch written anew with some of its records, at the same offsets."""

from __future__ import annotations

from struct import Struct
from typing import Final

from ixion.records.batch import BatchView
from ixion.records.builder import BatchBuilder
from ixion.records.layout import LAST_OFFSET_DELTA, MAX_TIMESTAMP
from ixion.records.patch import patch_crc
from ixion.records.record import Record

_I32: Final = Struct(">i")
_I64: Final = Struct(">q")


def rewrite_batch(batch: BatchView, kept: list[Record], delete_horizon: int) -> bytes:
    """`delete_horizon` in milliseconds, -1 for none. First and last offset stay as they were, even without records."""
    builder = BatchBuilder(
        codec=batch.codec,
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        timestamp_type=batch.timestamp_type,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        delete_horizon=delete_horizon if delete_horizon >= 0 else None,
    )
    for record in kept:
        builder.append_copy(record)
    data = bytearray(builder.build())
    _I32.pack_into(data, LAST_OFFSET_DELTA, batch.last_offset_delta)
    if not kept:
        _I64.pack_into(data, MAX_TIMESTAMP, batch.max_timestamp)
    patch_crc(data, 0)
    return bytes(data)
