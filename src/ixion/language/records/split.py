"""Takes records out of a batch, which leaves gaps in its offsets.

The remaining batch keeps the offsets, the last offset delta, the producer and the sequence of the whole. So the
producer gets the right offsets, and a duplicate is recognised. Kafka's compaction leaves such batches too: fewer
records than offsets, or no records at all, only the header of 61 bytes.
"""

from __future__ import annotations

from time import sleep
from typing import Final

from ixion._native import i64
from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder, encode_count, encode_headers
from ixion.language.records.compression import Codec
from ixion.language.records.record import Record
from ixion.language.records.schedule_headers import Wish, is_ours
from ixion.language.records.walker import Walker

BREATH: Final = 0x7FF  # records after which other threads may run; see `log.breather`


def split(batch: BatchView, wishes: list[Wish], codec: Codec, level: int | None) -> tuple[bytes, list[Record]]:
    """The batch without the records that `wishes` move to the schedule, and those records, with offsets from 0."""
    left = BatchBuilder(
        codec=codec,
        level=level,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
    )
    taken: list[Record] = []
    next_wish = 0
    for record in batch.records():
        if record.offset & BREATH == BREATH:
            sleep(0)
        if next_wish < len(wishes) and wishes[next_wish].index == record.offset:
            wish = wishes[next_wish]
            next_wish += 1
            if wish.is_taken:
                taken.append(record)
            else:
                left.append_encoded(record.offset, record.key, record.value, kept_headers(record, []), record.timestamp)
        else:
            left.append_copy(record)
    left.last_offset = batch.last_offset_delta
    if left.count == 0:
        left.base_timestamp = left.max_timestamp = batch.max_timestamp  # producer state expires by this timestamp
    return left.build(), taken


def kept_headers(record: Record, more: list[tuple[str, bytes | None]]) -> bytes:
    """The headers that are not about delivery, byte for byte, followed by `more`; encoded."""
    count, kept = headers_without(record, ())
    if more:
        kept += encode_headers(more)[1:]  # without the count, which is one byte up to 63
    return encode_count(count + len(more)) + kept


def headers_without(record: Record, names: tuple[bytes, ...]) -> tuple[int, bytes]:
    """Count and bytes of the headers with none of these names; if `names` is empty, of those not about delivery."""
    data = record.data
    walker = Walker(data, record.header_position, record.header_end)
    pieces: list[bytes] = []
    left: i64 = record.header_count
    while left > 0:
        left -= 1
        start = walker.position
        size = walker.varint(walker.end)
        name = data[walker.position : walker.position + size]
        walker.position += size
        size = walker.varint(walker.end)
        if size > 0:
            walker.position += size
        if name not in names if names else not is_ours(name.lower()):
            pieces.append(data[start : walker.position])
    return len(pieces), b"".join(pieces)
