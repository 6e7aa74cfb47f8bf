"""Rebuilds the producer state at an offset: the latest snapshot below it, then the batches since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.log.breather import Breather
from ixion.log.corrupt import DamagedIndexError
from ixion.log.handle import Handle
from ixion.log.producer_state import Draft, EndedTxn, ProducerState, is_expired
from ixion.log.scan import Scan
from ixion.records.batch import BatchView
from ixion.records.control import ControlType, control_type, coordinator_epoch

if TYPE_CHECKING:
    from ixion.log.log import Log
    from ixion.log.segment import Segment


def add_to_draft(draft: Draft, view: BatchView, offset: int) -> EndedTxn | None:
    """Adds a batch that begins at `offset`; returns the transaction that it ends, if any."""
    if view.is_control:
        if view.count == 0:
            return None  # compaction has removed the marker
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


def replay_batch(state: ProducerState, view: BatchView) -> EndedTxn | None:
    """Adds a batch that is in the log already; ends its transaction in the state if it is a marker."""
    ended = None
    if view.producer_id >= 0:
        draft = state.draft(view.producer_id, False)
        ended = add_to_draft(draft, view, int(view.base_offset))
        state.apply([draft])
        if ended is not None:
            state.end_txn(ended)
    state.end_offset = int(view.last_offset) + 1
    return ended


def replay(state: ProducerState, handle: Handle, start: int, size: int, end: int) -> list[EndedTxn]:
    """Adds the batches from byte `start` on that begin before offset `end`; returns the transactions that they end."""
    found: list[EndedTxn] = []
    breather = Breather()
    scan = Scan(handle, start, size)
    while scan.step() and scan.base_offset < end:
        breather.step()
        if scan.last_offset >= state.end_offset:
            view = scan.head()
            ended = replay_batch(state, scan.whole() if view.is_control else view)
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


def rebuild_producers(log: Log, log_start: int, end: int) -> None:
    """Sets the producer state of `log` to that at offset `end`."""
    state = log.producers
    expiration_ms = log.config.producer_id_expiration_ms
    now_ms = log.clock_ms()
    found = log.snapshots.load_latest(log_start, end)
    if found is None:
        state.clear(log_start)
    else:
        state.load([entry for entry in found[1] if not is_expired(entry, now_ms, expiration_ms)], found[0])
    for segment in log.segments.from_offset(state.end_offset):
        if state.end_offset >= end or segment.base_offset >= end:
            break
        replay(state, segment.handle, _position(log, segment, state.end_offset), segment.size, end)
    state.end_offset = end
    state.on_high_watermark(log.high_watermark)
