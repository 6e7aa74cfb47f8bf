"""Loads the delayed records of a partition, at a start or when this broker becomes its leader.

1. Notes about what the partition does not have are truncated.
2. The notes are applied, from the end of the newest snapshot on (`snapshot`) or from the first.
3. The partition is read from the last note on, by its batch headers. It has more than the notes only if the power
   failed: records that were delivered, markers of transactions. Their notes are written again.
"""

from __future__ import annotations

import logging

from ixion.broker.log.log import Log
from ixion.broker.log.view import Bound
from ixion.broker.schedules import snapshot
from ixion.broker.schedules.journal import PIECE, Journal, batches
from ixion.broker.schedules.note import Kind, Note, write_note, write_outcome
from ixion.broker.schedules.state import State
from ixion.broker.schedules.target import DELIVERER
from ixion.language.records.batch import BatchView
from ixion.language.records.control import ControlType, control_type
from ixion.language.records.schedule_headers import NEXT, OFFSET

logger = logging.getLogger(__name__)


def load(journal: Journal, partition: Log) -> State:
    """Blocks; for a worker thread. The caller must not append to either log meanwhile."""
    journal.align(partition.end_offset)
    state, start = snapshot.read(journal) or (State(journal), 0)
    state.snapshot_end = start
    for note in journal.notes(start):
        state.apply(note)
    found = 0
    for view in batches(partition, max(journal.log.end_offset, partition.log_start), PIECE, Bound.END):
        found += _find_lost(state, view)
    if found:
        logger.warning("%s: %d notes were lost and are written again", journal.log.name, found)
    return state


def _find_lost(state: State, view: BatchView) -> int:
    """Write the missing note of a batch again. Returns 1 if the batch needs one, else 0."""
    offset, epoch = int(view.base_offset), int(view.leader_epoch)
    if view.producer_id == DELIVERER and view.count:
        delivered: list[Note | None] = []
        again_ms: list[int] = []
        for record in view.records():
            facts = dict(record.headers)
            # None: the note was deleted, so the record does not wait.
            delivered.append(state.journal.find(int(facts.get(OFFSET.decode()) or -1)))
            again_ms.append(int(facts.get(NEXT.decode()) or -1))
        written, _ = write_outcome(offset, epoch, delivered, again_ms)
        if not written:
            return 0
        state.journal.write(written)
        for note in state.journal.notes(offset):
            state.apply(note)
        return 1
    is_marker = view.is_control and view.producer_id in state.open
    marker = control_type(view) if is_marker else ControlType.UNKNOWN
    if marker in (ControlType.COMMIT, ControlType.ABORT):
        commits = marker == ControlType.COMMIT
        kind = Kind.COMMITS if commits else Kind.ABORTS
        state.journal.write(write_note(kind, offset, epoch, producer_id=int(view.producer_id)))
        state.end_transaction(int(view.producer_id), commits)
        while state.advance_backlog():
            pass
        return 1
    return 0
