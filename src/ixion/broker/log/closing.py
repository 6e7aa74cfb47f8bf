"""Closes a log, so that the next start need not recover it.

1. Flush: the batches are on the disk, and the recovery point is the end of the log.
2. Under the log's lock: close the log. Write the state that a flush leaves out: the last timestamp, leader epochs
   without a batch, a snapshot of the producers. Release open files.
3. Without the lock: sync the files of step 2.

`LogManager.close` writes the clean-shutdown marker of the directory after all of its logs are closed.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.flushing import flush, sync_folder
from ixion.broker.log.handle import Handle
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ixion.broker.log.log import Log


def close(log: Log) -> None:
    try:
        with log.lock:
            if log.closed:
                return
            log.segments.active.add_last_timestamp()
        flush(log, -1)
        with log.lock:
            log.closed = True
            unsynced = _write(log)
            log.release_files()
        for handle in unsynced:
            handle.sync()
        if unsynced or log.new_names:
            sync_folder(log)
    except OSError as error:
        raise log.directory.fail(f"closing {log.name}", error) from error
    except CorruptFileError as damage:
        raise log.note_damage(damage) from damage
    finally:
        log.abandon()  # release the files even if closing failed


def _write(log: Log) -> list[Handle]:
    """Writes the state that is only in memory; returns the files to sync."""
    unsynced: list[Handle] = []
    if log.directory.offline:
        return unsynced
    if log.broken:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} must be recovered: {log.broken}")
    active = log.segments.active
    active.write_indexes_so_far()
    unsynced = active.take_unsynced_indexes()
    log.epochs.write()
    epochs = log.epochs.take_unsynced()
    if epochs is not None:
        unsynced.append(epochs)
    if log.snapshots.take(log.producers):
        unsynced.append(log.snapshots.open_latest())
    return unsynced
