"""Rewrites a batch with some of its records, at the same offsets."""

from __future__ import annotations

from struct import Struct
from typing import Final

from ixion.broker.log.breather import Breather
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.layout import LAST_OFFSET_DELTA, MAX_TIMESTAMP
from ixion.language.records.patch import patch_crc

_I32: Final = Struct(">i")
_I64: Final = Struct(">q")


def rewrite_batch(batch: BatchView, kept: bytearray, delete_horizon: int) -> bytes:
    """The batch with the records for which `kept` has a 1. Its first and last offset stay, even if it is empty.

    `delete_horizon` in milliseconds, -1 for none.
    """
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
    breather = Breather()
    number = 0
    if any(kept):
        for record in batch.records():
            breather.step()
            if kept[number]:
                builder.append_copy(record)
            number += 1
    data = bytearray(builder.build())
    _I32.pack_into(data, LAST_OFFSET_DELTA, batch.last_offset_delta)
    if not builder.count:
        _I64.pack_into(data, MAX_TIMESTAMP, batch.max_timestamp)
    patch_crc(data, 0)
    return bytes(data)
