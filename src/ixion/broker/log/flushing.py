"""Flushes a log: which files are synced, in which order, and how threads share the work.

A flush to offset 70 of a log with segments 0, 40 and 60 and recovery point 45 syncs the segments 40 and 60, with all
their bytes: if the log ends at 95, the recovery point becomes 95. A flush to 60 does not touch the last segment, which
is still growing.

1. Under the log's lock: write index entries to their files, and collect handles of all files to sync. A handle keeps
   its file open even if the file is renamed or deleted.
2. Without the lock: sync. First the batches, then the indexes and the leader epochs, which can be rebuilt from the
   batches, then the folder if it has new names.
3. Under the lock: move the recovery point. If the log was truncated meanwhile, the flush starts over, because the
   synced files are no longer those of the log.

One thread at a time flushes a log. Other threads wait, and mostly find their offset flushed when it is their turn: n
threads that flush one record each cost one or two rounds, not n.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.broker.log.directory_state import NO_ROOM
from ixion.broker.log.handle import Handle
from ixion.broker.log.index_file import IndexFile
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ixion.broker.log.log import Log

PIECE: Final = 1 << 20  # bytes


def sync_folder(log: Log) -> None:
    """Syncs the log's folder, which may be renamed meanwhile. Blocks."""
    while True:
        folder = log.folder
        try:
            log.files.sync_dir(folder)
            return
        except FileNotFoundError:
            if log.folder == folder:
                log.check_not_closed()  # a closed log's folder was deleted
                raise


def flush(log: Log, to: int) -> None:
    """Returns when everything below `to` is on the disk; -1 means the whole log."""
    with log.lock:
        target = log.end_offset if to < 0 else min(to, log.end_offset)
        if target <= log.recovery_point:
            return
    with log.flushing:
        while not _flush_once(log, target):
            pass


def _flush_once(log: Log, target: int) -> bool:
    """False if the log was truncated or renamed meanwhile: the caller tries again."""
    if log.must_rewrite and not _write_again(log):
        return False
    with log.lock:
        target = min(target, log.end_offset)
        if target <= log.recovery_point or log.closed or log.directory.offline:
            return True
        if log.truncating >= 0:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} cannot be flushed: {log.broken}")
        truncations = log.truncations
        folder = log.folder
        batches: list[Handle] = []
        indexes: list[Handle] = []
        taken: list[IndexFile] = []
        epochs: Handle | None = None
        covered = target
        try:
            for segment in log.segments.from_offset(log.recovery_point):
                if segment.base_offset >= target:
                    covered = segment.base_offset
                    break
                if segment.write_indexes_so_far():
                    log.new_names = True
                batches.append(segment.handle)
                for file in (segment.index.file, segment.time_index.file, segment.txn_index.file):
                    index = file.take_unsynced()
                    if index is not None:
                        taken.append(file)
                        indexes.append(index)
                covered = log.end_offset
            log.epochs.write()
            epochs = log.epochs.take_unsynced()
        except OSError as error:
            _take_back(log, taken, False)
            raise log.directory.fail(f"flushing {log.name}", error) from error
        names = log.new_names or epochs is not None
        log.new_names = False
    written = False
    try:
        for handle in batches:
            handle.sync()
        written = True
        for handle in indexes:
            handle.sync()
        if epochs is not None:
            epochs.sync()
        if names:
            log.files.sync_dir(folder)
    except OSError as error:
        with log.lock:
            log.new_names = log.new_names or names
            _take_back(log, taken, epochs is not None)
            if not written and error.errno in NO_ROOM:
                log.must_rewrite = True
            if isinstance(error, FileNotFoundError) and log.folder != folder:
                return False  # the log was deleted, or put in place
        raise log.directory.fail(f"flushing {log.name}", error) from error
    with log.lock:
        if truncations != log.truncations:
            return False
        if covered > log.recovery_point:
            log.recovery_point = covered
        log.last_flush_ms = log.clock_ms()
        return True


def _take_back(log: Log, taken: list[IndexFile], epochs: bool) -> None:
    """After a failed flush: the next one must sync these files. The caller holds the lock."""
    for file in taken:
        file.sync_again()
    if epochs:
        log.epochs.sync_again()


def _write_again(log: Log) -> bool:
    """Reads all unflushed bytes and writes them again, which makes their pages dirty again.

    A sync on a full disk may have dropped dirty pages. The system reports that once: the next sync would succeed
    without having written them. Each piece is read and written under the lock, so that no truncation happens in
    between. False if a truncation happened between two pieces.
    """
    with log.lock:
        if log.truncating >= 0:
            return True  # nothing is flushed
        truncations = log.truncations
        segments = list(log.segments.from_offset(log.recovery_point))
    try:
        for segment in segments:
            position = 0
            while position < segment.size:
                with log.lock:
                    if log.closed:
                        return True
                    if log.truncations != truncations:
                        return False
                    handle = segment.handle
                    piece = handle.read(min(PIECE, segment.size - position), position)
                    handle.write(position, [piece])
                if not piece:
                    break  # the file is shorter than the segment: nothing more to write
                position += len(piece)
    except OSError as error:
        raise log.directory.fail(f"flushing {log.name}", error) from error
    with log.lock:
        if log.truncations != truncations:
            return False
        log.must_rewrite = False
    return True


def flush_if_due(log: Log, now_ms: int) -> None:
    """Flushes a log whose flush.ms has passed, and the sealed segments of any other log."""
    with log.lock:
        if log.closed or not len(log.segments):
            return
        by_time = now_ms - log.last_flush_ms >= log.config.flush_ms
        to = log.end_offset if by_time else log.segments.active.base_offset
        if to <= log.recovery_point:
            return
    flush(log, to)
