"""The one write of an append, and everything that must be ready before it.

1. Check what the log may refuse: the size, and the producers' epochs and sequences, on drafts of the producer state.
2. Do what may fail: roll, open files, read indexes. Nothing has been written, so a failure leaves the log unchanged.
3. Write the batches, in one call. If the write fails, cut off what it left; if that fails too, the log is broken.
4. Update memory: indexes, leader epochs, producers, the end of the log.

The caller holds the log's lock.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.offset_index import MAX_RELATIVE
from ixion.broker.log.prepare import AppendInfo, Origin, Prepared
from ixion.broker.log.producer_state import Draft, EndedTxn
from ixion.broker.log.replay import add_to_draft
from ixion.broker.log.rolling import roll_at
from ixion.broker.log.segment import Segment
from ixion.broker.log.txn_index import AbortedTxn
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ixion.broker.log.log import Log


def append_prepared(
    log: Log, prepared: Prepared, leader_epoch: int, as_leader: bool, now_ms: int, origin: Origin
) -> AppendInfo:
    config = log.config
    # What the leader has, a follower takes; what waited is delivered. A batch that is too large gets its own segment.
    bounded = as_leader and origin != Origin.DELIVERY
    if bounded and prepared.size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"an append of {prepared.size} bytes does not fit a segment of {config.segment_bytes} bytes",
        )
    drafts: dict[int, Draft] = {}
    ended: list[EndedTxn] = []
    offset = prepared.first_offset
    max_timestamp = -1
    records = 0
    aborts = False
    for view in prepared.views:
        if not as_leader:
            offset = int(view.base_offset)
        if view.max_timestamp > max_timestamp:
            max_timestamp = int(view.max_timestamp)
        records += int(view.count)
        if view.producer_id >= 0:
            draft = drafts.get(view.producer_id)
            if draft is None:
                draft = drafts[view.producer_id] = log.producers.draft(view.producer_id, as_leader)
                draft.in_sequence = origin == Origin.CLIENT
                draft.raised_marker = origin == Origin.RAISED_MARKER
            txn = add_to_draft(draft, view, offset)
            if txn is not None:
                ended.append(txn)
                aborts = aborts or txn.aborted
        offset += int(view.last_offset_delta) + 1
    info = AppendInfo(prepared.first_offset, prepared.last_offset, log.log_start)
    try:
        if _should_roll(log, prepared, max_timestamp, now_ms):
            near = prepared.last_offset - log.end_offset <= MAX_RELATIVE
            roll_at(log, log.end_offset if near else prepared.first_offset, now_ms)
            info.rolled = True
        segment = log.segments.active
        segment.get_ready(aborts)
    except OSError as error:
        raise log.directory.fail(f"appending to {log.name}", error) from error
    except CorruptFileError as damage:
        raise log.note_damage(damage) from damage
    position = _write(log, segment, prepared)
    try:
        _note(log, segment, position, prepared, leader_epoch, as_leader)
        log.producers.apply(list(drafts.values()), now_ms)
        for txn in ended:
            log.producers.end_txn(txn)
            if txn.aborted:
                segment.txn_index.append(
                    AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
                )
    except Exception as fault:
        segment.size = position  # no read may return these bytes: they are not in the indexes
        raise log.break_off("an append was written but not indexed", fault) from fault
    offset = prepared.last_offset + 1
    log.end_offset = offset
    log.producers.end_offset = offset
    info.max_timestamp = max_timestamp
    info.records = records
    info.size = prepared.size
    info.flush_due = offset - log.recovery_point >= config.flush_messages
    return info


def _write(log: Log, segment: Segment, prepared: Prepared) -> int:
    """Write the batches; returns their position. If that fails, the log is unchanged or broken."""
    try:
        return segment.append(prepared.parts, prepared.size)
    except BaseException as error:
        if not segment.cut_back():
            log.break_off("the bytes of a failed write cannot be cut off", error)
        if isinstance(error, OSError):
            raise log.directory.fail(f"appending to {log.name}", error) from error
        raise


def _note(log: Log, segment: Segment, position: int, prepared: Prepared, leader_epoch: int, as_leader: bool) -> None:
    """Adds written batches to the indexes and the leader epochs."""
    offset = prepared.first_offset
    epoch = leader_epoch
    interval = log.config.index_interval_bytes
    for view in prepared.views:
        if not as_leader:
            offset = int(view.base_offset)
            epoch = int(view.leader_epoch)
        if epoch > log.epochs.latest:
            log.epochs.assign(epoch, offset)
        last = offset + int(view.last_offset_delta)
        size = int(view.size_in_bytes)
        segment.note_batch(position, size, last, int(view.max_timestamp), interval)
        position += size
        offset = last + 1


def _should_roll(log: Log, prepared: Prepared, max_timestamp: int, now_ms: int) -> bool:
    config = log.config
    segment = log.segments.active
    if segment.size > config.segment_bytes - prepared.size or not segment.can_hold(prepared.last_offset):
        return True
    if segment.index.is_full(config.segment_index_bytes) or segment.time_index.is_full(config.segment_index_bytes):
        return True
    if segment.size == 0:
        return False
    # The age of a segment counts in its records' timestamps if they have any, else by the clock.
    since = _first_timestamp(segment)
    waited = max_timestamp - since if since >= 0 and max_timestamp >= 0 else now_ms - segment.created_ms
    limit = min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms
    return waited > limit - log.jitter_ms


def _first_timestamp(segment: Segment) -> int:
    if segment.first_timestamp == -1 and segment.size:
        segment.load_first_timestamp()
    return segment.first_timestamp
