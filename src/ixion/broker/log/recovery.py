"""Recovers one segment after an unclean stop: checks every batch, and rebuilds indexes, epochs and producer state.

A batch is valid if it is complete, its CRC matches, and its offsets are above those before and within reach of the base
offset. Its position goes into the indexes, its epoch into the epoch cache, its producer into the producer state. Gaps
between batches are no damage: compaction leaves them, and the topic's cleanup policy may have changed since. The log
ends before the first invalid batch; the rest is set aside (see `aside`).

The file is read in pieces of 1 MiB, and the checksum takes most of the time.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from typing import Final

from librt.strings import read_i32_be

from ixion._native import i64
from ixion.broker.log.aside import Aside
from ixion.broker.log.breather import Breather
from ixion.broker.log.epochs import EpochCache
from ixion.broker.log.names import LOG
from ixion.broker.log.producer_state import ProducerState
from ixion.broker.log.replay import replay_batch
from ixion.broker.log.segment import Segment
from ixion.broker.log.txn_index import AbortedTxn
from ixion.language.model.errors import KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.layout import BATCH_LENGTH, LOG_OVERHEAD, MIN_BATCH_LENGTH

logger = logging.getLogger(__name__)

PIECE: Final = 1 << 20
CUT_SHORT: Final = "the last batch is incomplete"


class Damage:
    """The position of the first invalid batch of a segment, and what is wrong with it."""

    __slots__ = ("position", "reason")

    def __init__(self, position: int, reason: str) -> None:
        self.position: Final = position
        self.reason: Final = reason


def recover_segment(
    segment: Segment, producers: ProducerState, epochs: EpochCache, interval: int, now_ms: int
) -> Damage | None:
    """Reads the segment and rebuilds the derived state; returns the first damage, if any.

    The new indexes are in memory only. The caller cuts off the damage before it writes them: until then a next start
    must find the old indexes, which show that the segment needs recovery.
    """
    segment.forget()
    handle = segment.handle
    good: i64 = 0  # bytes known to be valid
    size: i64 = segment.size
    last_offset = segment.base_offset - 1
    piece = b""
    start: i64 = 0  # position of the piece in the file
    reason = ""
    breather = Breather()
    while good < size:
        breather.step()
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
                reason = CUT_SHORT
                break
            piece = handle.read(min(max(PIECE, wanted), size - good), good)
            start = good
            if len(piece) < wanted:
                reason = CUT_SHORT
                break
            continue
        reason = _take(segment, producers, epochs, interval, piece, inside, good, last_offset, now_ms)
        if reason:
            break
        last_offset = int(BatchView(piece, inside).last_offset)
        good += wanted
    segment.trusted = True
    segment.add_last_timestamp()
    return Damage(int(good), reason) if good < size else None


def cut_damage(segment: Segment, damage: Damage, aside: Aside) -> None:
    """Cuts the segment off at its damage, after setting the rest aside."""
    path = segment.path(LOG)
    logger.warning("%s is damaged from byte %d on: %s", path, damage.position, damage.reason)
    aside.keep_end(segment.handle, path, damage.position, segment.size, damage.reason == CUT_SHORT)
    segment.cut(damage.position)


def _take(
    segment: Segment,
    producers: ProducerState,
    epochs: EpochCache,
    interval: int,
    piece: bytes,
    inside: i64,
    position: i64,
    last_offset: int,
    now_ms: int,
) -> str:
    """Adds one batch to the derived state; returns what is wrong with the batch, "" if it is valid."""
    try:
        view = BatchView(piece, inside)
        if not view.crc_is_valid():
            return "its checksum does not match"
        base = int(view.base_offset)
        if base <= last_offset or view.last_offset_delta < 0 or not segment.can_hold(int(view.last_offset)):
            return f"it has offsets {base} to {view.last_offset} after offset {last_offset}"
        ended = replay_batch(producers, view, now_ms)
    except KafkaError as error:
        return str(error)
    segment.note_batch(int(position), int(view.size_in_bytes), int(view.last_offset), int(view.max_timestamp), interval)
    if view.leader_epoch > epochs.latest:
        epochs.assign(int(view.leader_epoch), base)
    if ended is not None and ended.aborted:
        segment.txn_index.append(
            AbortedTxn(ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset)
        )
    return ""
