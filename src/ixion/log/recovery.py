"""Recovery of one segment after an unclean stop: read every batch, believe nothing, rebuild all that is derived.

From the first byte on: a whole batch, its CRC right, its offsets rising and within reach of the base? Then its place
goes into the indexes, its epoch into the epoch cache, its producer into the producer state. At the first batch that is
not, the file is cut; what comes after it, in this file and in later segments, is lost, because a reader could not tell
a hole from the truth.

The file is read in pieces of 1 MiB, and the checksum takes most of the time.
"""

from __future__ import annotations

import logging
from typing import Final

from librt.strings import read_i32_be

from ixion._native import i64
from ixion.log.epochs import EpochCache
from ixion.log.names import LOG
from ixion.log.producer_state import ProducerState
from ixion.log.replay import replay_batch
from ixion.log.segment import Segment
from ixion.log.txn_index import AbortedTxn
from ixion.model.errors import KafkaError
from ixion.records.batch import BatchView
from ixion.records.layout import BATCH_LENGTH, LOG_OVERHEAD, MIN_BATCH_LENGTH

logger = logging.getLogger(__name__)

PIECE: Final = 1 << 20


def recover_segment(segment: Segment, producers: ProducerState, epochs: EpochCache, interval: int) -> int:
    """Makes the segment sound; says how many bytes were cut off."""
    segment.forget()
    segment.dense = segment.size > 0
    handle = segment.handle
    good: i64 = 0  # bytes known to be sound
    size: i64 = segment.size
    last_offset = segment.base_offset - 1
    piece = b""
    start: i64 = 0  # of the piece, in the file
    reason = ""
    while good < size:
        inside: i64 = good - start
        wanted: i64 = LOG_OVERHEAD + MIN_BATCH_LENGTH
        if inside + wanted <= len(piece):
            length = i64(read_i32_be(piece, inside + BATCH_LENGTH))
            if length < MIN_BATCH_LENGTH:
                reason = f"a batch length of {length}"
                break
            wanted = LOG_OVERHEAD + length
        if inside + wanted > len(piece):
            if good + wanted > size:
                reason = "the last batch is cut short"
                break
            piece = handle.read(max(PIECE, wanted), good)
            start = good
            if len(piece) < wanted:
                reason = "the last batch is cut short"
                break
            continue
        reason = _take(segment, producers, epochs, interval, piece, inside, good, last_offset)
        if reason:
            break
        last_offset = int(BatchView(piece, inside).last_offset)
        good += wanted
    cut = segment.size - int(good)
    if cut:
        logger.warning("%s: %d bytes from byte %d on are cut off: %s", segment.path(LOG), cut, good, reason)
        segment.cut(int(good))
    segment.trusted = True
    segment.add_last_timestamp()
    segment.index.file.rewrite()
    segment.time_index.file.rewrite()
    segment.txn_index.write()
    return cut


def _take(
    segment: Segment,
    producers: ProducerState,
    epochs: EpochCache,
    interval: int,
    piece: bytes,
    inside: i64,
    position: i64,
    last_offset: int,
) -> str:
    """Adds one batch to all that is derived from it; says what is wrong with it instead, if anything is."""
    try:
        view = BatchView(piece, inside)
        if not view.crc_is_valid():
            return "its checksum does not match"
        base = int(view.base_offset)
        if base <= last_offset or view.last_offset_delta < 0 or not segment.can_hold(int(view.last_offset)):
            return f"it holds offsets {base} to {view.last_offset} after offset {last_offset}"
        ended = replay_batch(producers, view)
    except KafkaError as error:
        return str(error)
    if base != last_offset + 1 or view.count != view.last_offset_delta + 1:
        segment.dense = False
    segment.note_batch(int(position), int(view.size_in_bytes), int(view.last_offset), int(view.max_timestamp), interval)
    if view.leader_epoch > epochs.latest:
        epochs.assign(int(view.leader_epoch), base)
    if ended is not None and ended.aborted:
        segment.txn_index.append(
            AbortedTxn(ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)
        )
    return ""
