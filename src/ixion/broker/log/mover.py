"""Moves a partition to another log directory of the same broker while it is being written and read.

    current log   orders-0 in /disk1       0 ........................ 900 | 901 902 <- appends
    future log    orders-0.…-future        0 ............ 512 ->
                  in /disk2

1. Copy the batches of the current log to the future log, as a follower would: same offsets, same epochs. Appends and
   reads go on. If the current log is truncated meanwhile, or retention deletes batches before they are copied, the
   future log starts over. The log is not compacted until the move is over (see `partition_logs`).
2. When little is left to copy, flush the future log, write its log start to the checkpoint of its directory, give its
   folder the final name, and copy the batches appended meanwhile.
3. Under the lock of the current log, which delays appends for a moment but never for a sync: copy the last batches,
   then the state that is not in batches (high watermark, log start, epochs and producers without a batch), and give the
   manager the new log. Now the current log is closed; an append that waited for its lock fails with
   KAFKA_STORAGE_ERROR, and the client's retry finds the new log.
4. Flush the new log, then delete the old folder like that of a deleted topic.

If the partition has a sibling with delayed records, each step is done for both, and both are replaced under their two
locks: as a note and what it is about are never in different directories, one disk has all or nothing of a partition. A
sibling that is made during the move is noticed in step 3, and the move goes back to step 1 for it.

The power may fail at any moment. Before the rename of step 2 only the current log counts. From then until
the flush of step 4 there are two copies, and the next start keeps the better one (see `directory_loader`): up to step 3
the current log has everything, and after it an acknowledged record is in the new log, or still in both.

Runs on a worker thread. Lock order: the partition's log, its sibling, their future logs, the manager.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack

from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.partition_logs import Pair
from ixion.broker.log.reader import read, read_held
from ixion.broker.log.view import Bound
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView

logger = logging.getLogger(__name__)

CHUNK = 256 << 10  # bytes; with the smallest batches a few ms of work, for which the event loop waits
LITTLE = 64 << 10  # bytes; this little can be copied while appends wait


class MoveCancelledError(Exception):
    """The move was cancelled; the partition stays in its directory."""


class Mover:
    """One move of one partition. At most one may run per partition."""

    def __init__(
        self,
        manager: LogManager,
        topic: str,
        partition: int,
        directory: LogDirectory,
        on_moved: Callable[[Log], None] | None = None,
    ) -> None:
        """`on_moved` is called with each new log while appends still wait; it must not block or use any log."""
        self._manager = manager
        self._logs = manager.of(topic, partition)
        self._directory = directory
        self._on_moved = on_moved
        self._cancelled = threading.Event()
        self._truncations: dict[Log, int] = {}  # `truncations` of each current log when copying it began

    def cancel(self) -> None:
        """Cancels the move, unless it is done: `run` raises MoveCancelledError. Any thread may call this."""
        self._cancelled.set()

    def run(self) -> Log:
        """Moves the partition and returns its new log. If that fails, the partition stays and the copies are
        deleted."""
        self._logs.pause_cleaning()
        try:
            pairs = self._copy()
        except BaseException:
            try:
                self._logs.drop_copies()
            except KafkaError as error:  # logged only: the caller gets the error that ended the move
                name, number = self._logs.key
                logger.error("a copy of %s-%d in %s cannot be deleted: %s", name, number, self._directory.path, error)
            raise
        finally:
            self._logs.resume_cleaning()
        log = self._manager.logs[self._logs.key] if not self._has_moved(pairs) else pairs[0][1]
        self._retire(pairs)
        return log

    def _has_moved(self, pairs: list[Pair]) -> bool:
        """Whether the partition was moved, or only its sibling."""
        return bool(pairs) and (pairs[0][0].topic, pairs[0][0].partition) == self._logs.key

    def _copy(self) -> list[Pair]:
        """Steps 1 to 3. Returns the logs that were replaced, with the new ones."""
        while True:
            pairs = self._logs.make_copies(self._directory)
            for current, future in pairs:
                if current not in self._truncations:
                    self._start_over(current, future)
                self._catch_up(current, future)
                future.flush()
                _follow_start(future, current.log_start)
            if not pairs:
                return pairs
            self._manager.checkpoints.write_log_starts()
            self._logs.name_copies(pairs)
            for current, future in pairs:
                self._catch_up(current, future)
            if self._finish(pairs):
                return pairs

    def _retire(self, pairs: list[Pair]) -> None:
        """Step 4. The sibling is flushed first, because its partition refers to it."""
        try:
            for _, future in reversed(pairs):
                future.flush()
            for current, _ in pairs:
                self._manager.retire_replaced(current)
        except KafkaError as error:
            for current, _ in pairs:
                self._manager.leave_behind(current)
            name, number = self._logs.key
            logger.error("an old folder of %s-%d cannot be deleted: %s", name, number, error)
        self._manager.checkpoints.write_all()

    def _start_over(self, current: Log, future: Log) -> None:
        with current.lock:
            self._truncations[current] = current.truncations
            start = current.log_start
        future.truncate_fully(start)

    def _catch_up(self, current: Log, future: Log) -> None:
        size = min(CHUNK, current.config.segment_bytes)
        mended_at = -1
        while True:
            if self._cancelled.is_set():
                raise MoveCancelledError(f"the move of {current.name} to {self._directory.path} was cancelled")
            if current.truncations != self._truncations[current]:
                self._start_over(current, future)
            end = current.end_offset
            try:
                records = read(current, future.end_offset, size, Bound.END).records
            except KafkaError as error:
                if current.damaged_indexes and mended_at < future.end_offset:
                    mended_at = future.end_offset
                    current.mend()
                    continue
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                self._start_over(current, future)
                continue
            _append(future, records)
            if future.end_offset >= end and len(records) < LITTLE:
                return

    def _finish(self, pairs: list[Pair]) -> bool:
        """Step 3. False if there is more to copy."""
        with ExitStack() as locks:
            for current, _ in pairs:
                locks.enter_context(current.lock)
            if not all(self._copy_rest(current, future) for current, future in pairs):
                return False
            locks.enter_context(self._manager.lock)
            if not self._logs.may_put_in_place(pairs):
                return False
            for current, future in pairs:
                _inherit(future, current)
            self._logs.put_in_place(pairs)
            for current, future in pairs:
                current.closed = True
                if self._on_moved is not None:
                    self._on_moved(future)
            return True

    def _copy_rest(self, current: Log, future: Log) -> bool:
        """False if there is more to copy: the current log was truncated, or its log start is beyond the copy or inside
        the next batch. In the last case the copy must be truncated, which writes checkpoints: not under this lock."""
        current.check_open()
        if not future.log_start <= current.log_start <= future.end_offset:
            self._truncations[current] = -1
        if current.truncations != self._truncations[current]:
            return False
        size = min(CHUNK, current.config.segment_bytes)
        while future.end_offset < current.end_offset:
            records = read_held(current, future.end_offset, size, Bound.END).records
            if BatchView(records, 0).base_offset < future.end_offset:
                return False
            future.append_as_follower(records)
        _follow_start(future, current.log_start)
        return True


def _append(future: Log, records: bytes) -> None:
    if not records:
        return
    base = int(BatchView(records, 0).base_offset)
    if base < future.end_offset:
        # The current log starts inside a batch, which is copied whole; `_follow_start` sets the log start later.
        future.truncate_fully(base)
    future.append_as_follower(records)


def _follow_start(future: Log, start: int) -> None:
    with future.lock:
        if future.log_start < start <= future.end_offset:
            future.move_log_start(start)


def _inherit(future: Log, current: Log) -> None:
    """Takes over state that is not in the batches. The caller holds the current log's lock.

    The logs share their producers from here on: the future log must be put in place, or dropped.
    """
    with future.lock:
        try:
            future.producers = current.producers
            future.snapshots.drop_above(future.end_offset - 1)
            future.snapshots.take(future.producers)
            future.high_watermark = current.high_watermark
            future.visible_end = current.visible_end
            future.epochs.replace(current.epochs.entries())
            future.epochs.write()
        except OSError as error:
            raise future.directory.fail(f"moving {future.name}", error) from error
