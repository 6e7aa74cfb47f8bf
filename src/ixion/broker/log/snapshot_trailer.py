"""What a snapshot of ours knows beyond Kafka's format, in bytes after its entries.

    "ixn1" | count i32 | rows: producer id i64, used i64 (ms), offset of the last abort marker i64 (-1: none),
    earlier batches u8, and each of these, the oldest first: last sequence i32, last offset i64, offset delta i32,
    timestamp i64

Kafka stores the last batch of a producer only. After a restart its leader refuses an earlier one of five that were in
flight when the producer repeats it, although it is in the log (OUT_OF_ORDER_SEQUENCE_NUMBER). The producer reports an
error for a record that was written, and sends the later batches again with its next epoch: they are in the log twice.

Apache Kafka reads the entries, and its checksum covers the whole file; it ignores what follows them (3.9 and 4.x). A
snapshot without a trailer is Kafka's own, or that of a log without producers that have more to tell.
"""

from __future__ import annotations

import struct
from typing import Final

from ixion.broker.log.producer_entry import BATCHES_KEPT, BatchTrace, ProducerEntry

MARK: Final = b"ixn1"
# A producer gives up on a batch after delivery.timeout.ms, two minutes by default. Earlier batches of a producer that
# has been idle for longer than this are not stored.
RETRIED_MS: Final = 3_600_000
# A snapshot is written within an append, so it must not take long. Beyond this many producers, the last ones to write
# have earlier batches.
MOST_RETRYING: Final = 2_000
SLACK_MS: Final = 60_000  # by which the timestamp of a producer may miss the time of its last use

_COUNT = struct.Struct(">i")
_ROW = struct.Struct(">qqqB")
_BATCH = struct.Struct(">iqiq")


def encode_trailer(entries: list[ProducerEntry]) -> bytes:
    """Empty if Kafka's format has everything."""
    newest_ms = max([entry.used_ms for entry in entries], default=0)
    lowest = _lowest_offset(entries)
    parts: list[bytes] = []
    count = 0
    for entry in entries:
        retries = newest_ms - entry.used_ms < RETRIED_MS and entry.last_offset >= lowest
        earlier = entry.batches[:-1] if retries else []
        abort_offset = entry.abort_offset if retries else -1
        if earlier or abort_offset >= 0 or entry.used_ms - entry.last_timestamp > SLACK_MS:
            count += 1
            parts.append(_ROW.pack(entry.producer_id, entry.used_ms, abort_offset, len(earlier)))
            parts += [
                _BATCH.pack(trace.last_sequence, trace.last_offset, trace.offset_delta, trace.timestamp)
                for trace in earlier
            ]
    return MARK + _COUNT.pack(count) + b"".join(parts) if count else b""


def _lowest_offset(entries: list[ProducerEntry]) -> int:
    """The last offset of a producer from which on its earlier batches are stored."""
    if len(entries) <= MOST_RETRYING:
        return -1
    return sorted([entry.last_offset for entry in entries])[-MOST_RETRYING]


def decode_trailer(data: bytes, entries: list[ProducerEntry]) -> bool:
    """Adds the facts to their entries; False if the trailer is damaged. One that is not ours is ignored."""
    if not data.startswith(MARK):
        return True
    by_id = {entry.producer_id: entry for entry in entries}
    try:
        (count,) = _COUNT.unpack_from(data, len(MARK))
        position = len(MARK) + _COUNT.size
        for _ in range(count):
            producer_id, used_ms, abort_offset, batches = _ROW.unpack_from(data, position)
            position += _ROW.size
            entry = by_id[producer_id]
            if batches >= BATCHES_KEPT:
                return False
            entry.used_ms = used_ms
            entry.abort_offset = abort_offset
            earlier = []
            for _ in range(batches):
                sequence, offset, delta, timestamp = _BATCH.unpack_from(data, position)
                earlier.append(BatchTrace(sequence, offset, delta, timestamp))
                position += _BATCH.size
            entry.batches = [*earlier, *entry.batches]
    except (struct.error, KeyError):
        return False
    return position == len(data)
