"""Rebuilds the indexes of a segment from its batches while the log is in use.

An append or a read that finds a damaged index fails with KAFKA_STORAGE_ERROR, which clients retry, and marks the
segment (`Log.note_damage`). It does not rebuild the index itself: reading a segment of 1 GB would block the event loop
for seconds. The disk guard's thread calls `Log.mend` every two seconds, which calls `rebuild_damaged`.

1. Under the log's lock: get the file and its size.
2. Without it: read the batches, write new indexes to temporary files and sync them, because no flush will sync the
   indexes of a sealed segment.
3. Under the lock: add batches that were appended meanwhile, and replace the old indexes.

The transaction index is rebuilt only if it is damaged itself, from the producer state as in recovery.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ixion.broker.log.corrupt import DamagedIndexError
from ixion.broker.log.flushing import sync_folder
from ixion.broker.log.handle import Handle
from ixion.broker.log.names import TXN_INDEX
from ixion.broker.log.producer_state import ProducerState
from ixion.broker.log.replay import replay
from ixion.broker.log.segment import Segment
from ixion.broker.log.txn_index import AbortedTxn

if TYPE_CHECKING:
    from ixion.broker.log.log import Log

logger = logging.getLogger(__name__)

TO_THE_END: Final = (1 << 63) - 1


def rebuild_damaged(log: Log) -> None:
    """Rebuilds all indexes marked as damaged. The caller does not hold the log's lock."""
    if log.damaged_indexes:
        _look_further(log)
    for damage in list(log.damaged_indexes.values()):
        if _rebuild(log, damage.base_offset, damage.path.endswith(TXN_INDEX)):
            log.damaged_indexes.pop(damage.base_offset, None)
            logger.warning("rebuilt the indexes of a segment of %s: %s", log.name, damage)


def _look_further(log: Log) -> None:
    """If one index is damaged, others may be: finds them before a request does."""
    for segment in list(log.segments):
        with log.lock:
            if log.closed:
                return
            try:
                segment.check_indexes()
            except DamagedIndexError as damage:
                log.note_damage(damage)


def _rebuild(log: Log, base_offset: int, txn_index_too: bool) -> bool:
    """False if the log changed meanwhile; the next call retries."""
    with log.lock:
        segment = _find(log, base_offset)
        if log.closed or segment is None:
            log.damaged_indexes.pop(base_offset, None)
            return False
        truncations = log.truncations
        folder = log.folder
        interval = log.config.index_interval_bytes
        handle = segment.handle
        size = segment.size
        history = History(log, segment) if txn_index_too else None
    fresh = Segment(log.files, folder, base_offset, {}, segment.created_ms, segment.suffix)
    fresh.size = size
    read_to = fresh.note_batches(handle, 0, size, interval)
    fresh.add_last_timestamp()
    fresh.index.file.stage()
    fresh.time_index.file.stage()
    if history is not None:
        for txn in history.aborted():
            fresh.txn_index.append(txn)
        fresh.txn_index.file.stage()
    with log.lock:
        if log.truncations != truncations or not _is_in_place(log, folder, segment):
            return False
        if segment.size > size:
            fresh.size = segment.size
            fresh.note_batches(handle, read_to, segment.size, interval)
        fresh.index.file.unveil()
        fresh.time_index.file.unveil()
        if history is not None:
            fresh.txn_index.file.unveil()
            segment.txn_index = fresh.txn_index
        segment.take_indexes(fresh)
    sync_folder(log)
    return True


def _is_in_place(log: Log, folder: str, segment: Segment) -> bool:
    return not log.closed and log.folder == folder and segment in log.segments


def _find(log: Log, base_offset: int) -> Segment | None:
    for segment in log.segments:
        if segment.base_offset == base_offset:
            return segment
    return None


class History:
    """A producer snapshot from before a segment, and the files from there to the segment's end.

    Made under the log's lock, used without it.
    """

    __slots__ = ("_files", "_state", "_target")

    def __init__(self, log: Log, target: Segment) -> None:
        self._state = ProducerState()
        self._target = target.handle
        found = log.snapshots.load_latest(log.log_start, target.base_offset)
        if found is None:
            self._state.clear(log.log_start)
        else:
            self._state.load(found[1], found[0])
        self._files: list[tuple[Handle, int]] = [
            (segment.handle, segment.size)
            for segment in log.segments.from_offset(self._state.end_offset)
            if segment.base_offset <= target.base_offset
        ]

    def aborted(self) -> list[AbortedTxn]:
        """The aborted transactions that end in the segment."""
        found: list[AbortedTxn] = []
        for handle, size in self._files:
            ended = replay(self._state, handle, 0, size, TO_THE_END, 0)
            if handle is self._target:
                found = [
                    AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
                    for txn in ended
                    if txn.aborted
                ]
        return found
