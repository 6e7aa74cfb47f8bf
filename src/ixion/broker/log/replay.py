"""Rebuilds the producer state at an offset: the latest snapshot below it, then the batches since.

A snapshot has the open transactions. It lacks those that have ended, but whose marker is not below the high watermark:
they, too, keep the last stable offset back. So if a marker lies between the high watermark and the latest snapshot,
they are found from an earlier one. (Apache Kafka does not look, and its last stable offset is too high for a while.)
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.broker.log.breather import Breather
from ixion.broker.log.corrupt import DamagedIndexError
from ixion.broker.log.handle import Handle
from ixion.broker.log.producer_state import Draft, EndedTxn, ProducerState, is_expired
from ixion.broker.log.scan import Scan
from ixion.language.records.batch import BatchView
from ixion.language.records.control import ControlType, control_type, coordinator_epoch

if TYPE_CHECKING:
    from ixion.broker.log.log import Log
    from ixion.broker.log.segment import Segment


def add_to_draft(draft: Draft, view: BatchView, offset: int) -> EndedTxn | None:
    """Adds a batch that begins at `offset`; returns the transaction that it ends, if any."""
    if view.is_control:
        kind = control_type(view)
        if kind not in (ControlType.COMMIT, ControlType.ABORT):
            return None
        return draft.add_marker(
            int(view.producer_epoch),
            coordinator_epoch(view),
            kind == ControlType.COMMIT,
            offset,
            int(view.max_timestamp),
        )
    draft.add_data(
        int(view.producer_epoch),
        int(view.base_sequence),
        int(view.last_sequence),
        offset,
        offset + int(view.last_offset_delta),
        int(view.max_timestamp),
        view.is_transactional,
    )
    return None


def replay_batch(state: ProducerState, view: BatchView, now_ms: int) -> EndedTxn | None:
    """Adds a batch that is in the log already; ends its transaction in the state if it is a marker."""
    ended = None
    if view.producer_id >= 0:
        draft = state.draft(view.producer_id, False)
        ended = add_to_draft(draft, view, int(view.base_offset))
        state.apply([draft], now_ms)
        if ended is not None:
            state.end_txn(ended)
    state.end_offset = int(view.last_offset) + 1
    return ended


def replay(state: ProducerState, handle: Handle, start: int, size: int, end: int, now_ms: int) -> list[EndedTxn]:
    """Adds the batches from byte `start` on that begin before offset `end`; returns the transactions that they end."""
    found: list[EndedTxn] = []
    breather = Breather()
    scan = Scan(handle, start, size)
    while scan.step() and scan.base_offset < end:
        breather.step()
        if scan.last_offset >= state.end_offset:
            view = scan.head()
            ended = replay_batch(state, scan.whole() if view.is_control else view, now_ms)
            if ended is not None:
                found.append(ended)
    return found


def _position(log: Log, segment: Segment, offset: int) -> int:
    """The position at which to start the search for `offset`; the end of the file if the segment ends before it."""
    try:
        place = segment.locate(max(offset, segment.base_offset))
    except DamagedIndexError as damage:
        log.note_damage(damage)
        return 0
    return segment.size if place is None else place.position


def rebuild_producers(log: Log, log_start: int, end: int, replicated: int) -> None:
    """Sets the producer state of `log` to that at offset `end`. `replicated` is the high watermark."""
    state = log.producers
    now_ms = log.clock_ms()
    found = log.snapshots.load_latest(log_start, end)
    if found is None:
        state.clear(log_start)
    else:
        expiration_ms = log.config.producer_id_expiration_ms
        state.load([entry for entry in found[1] if not is_expired(entry, now_ms, expiration_ms)], found[0])
        if found[0] > replicated and _has_markers(log, replicated, found[0]):
            state.add_ended(_state_at(log, log_start, found[0], replicated))
    _replay_segments(log, state, end, now_ms)
    state.on_high_watermark(log.high_watermark)


def _state_at(log: Log, log_start: int, end: int, snapshot: int) -> ProducerState:
    """The state at `end`, from the latest snapshot at or below offset `snapshot` on."""
    state = ProducerState()
    found = log.snapshots.load_latest(log_start, snapshot)
    if found is None:
        state.clear(log_start)
    else:
        state.load(found[1], found[0])
    _replay_segments(log, state, end, log.clock_ms())
    return state


def _replay_segments(log: Log, state: ProducerState, end: int, now_ms: int) -> None:
    for segment in log.segments.from_offset(state.end_offset):
        if state.end_offset >= end or segment.base_offset >= end:
            break
        replay(state, segment.handle, _position(log, segment, state.end_offset), segment.size, end, now_ms)
    state.end_offset = end


def _has_markers(log: Log, first: int, end: int) -> bool:
    """Whether a transaction may have ended in [first, end)."""
    breather = Breather()
    for segment in log.segments.from_offset(first):
        scan = Scan(segment.handle, min(_position(log, segment, first), segment.size), segment.size)
        while scan.step() and scan.base_offset < end:
            breather.step()
            if scan.head().is_control:
                return True
    return False
