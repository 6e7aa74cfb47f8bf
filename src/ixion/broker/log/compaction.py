"""Compacts one log: keeps only the last record of each key, at its old offset.

    before   0:a=1  1:b=2  2:a=3  3:c=4  4:b=-     (- is a tombstone: the key is deleted)
    after                  2:a=3  3:c=4  4:b=-     and, once delete.retention.ms has passed, 2:a=3  3:c=4

1. `build_map` reads the dirty part, from where the last compaction stopped, and stores the last offset of every key.
   The dirty part ends where a consumer at read_committed must stop (`Bound.VISIBLE_STABLE`), so that each of its
   transactions is decided. Their markers may come later, in any segment: `find_aborted` looks at all of them. An
   aborted record does not replace others.
2. `compact` copies all segments up to the end of the dirty part into new ones, `.cleaned`, without records that have a
   newer record of the same key in the map; small neighbours are merged.
3. `swap` replaces the old segments: `.cleaned` becomes `.swap`, which a start completes, then the old ones are deleted.

Records keep their offsets, and a batch keeps its first and last offset, so offsets have gaps. Some batches stay even if
they are empty: the batch with the last sequence of a live producer, and the last batch of the dirty part. Batches that
end after the dirty part are copied as they are. A marker of an aborted transaction and its entry in the transaction
index stay and go together: an entry without its marker would hide the next transactions of that producer. A batch with
a tombstone gets a delete horizon, and so does a marker whose transaction has no records left: from that time on
compaction may delete it (KIP-534).

Blocks; runs on a worker thread that holds the log's `replacing`. It takes the log's lock only to list the segments and
to rename files, not while the disk syncs. So meanwhile idle files may be closed (`batches_of` keeps its own handle),
and the log may be truncated, or deleted with its folder. A truncation makes the map and the list of segments wrong, so
we compare `Log.truncations` with its value when the dirty part was chosen, and abort if it has changed.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from ixion.broker.log.breather import Breather
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.log import Log
from ixion.broker.log.names import CLEANED, LOG
from ixion.broker.log.offset_map import OffsetMap
from ixion.broker.log.rewrite import rewrite_batch
from ixion.broker.log.scan import Scan
from ixion.broker.log.segment import Segment
from ixion.broker.log.swapping import offer, settle, take
from ixion.broker.log.txn_index import AbortedTxn
from ixion.broker.log.txn_tracker import TxnTracker
from ixion.broker.log.view import aborted_within
from ixion.language.records.batch import BatchView

logger = logging.getLogger(__name__)

# Called with the number of bytes before each read or write; sleeps to keep the rate.
Spend = Callable[[int], None]


def spend_freely(_size: int) -> None:
    """No limit on the rate."""


class CompactionAbortedError(Exception):
    """The log was truncated or closed during the compaction, which changed nothing."""


class CompactionStats:
    __slots__ = ("bytes_after", "bytes_before", "records_after", "records_before")

    def __init__(self) -> None:
        self.bytes_before = 0
        self.bytes_after = 0
        self.records_before = 0
        self.records_after = 0


def find_aborted(log: Log, end: int) -> list[AbortedTxn]:
    """The aborted transactions with records below `end`, which lies at or below the last stable offset."""
    with log.lock:
        return aborted_within(log, log.segments.first.base_offset, end)


def build_map(
    log: Log,
    start: int,
    end: int,
    aborted: list[AbortedTxn],
    offset_map: OffsetMap,
    spend: Spend = spend_freely,
) -> int:
    """Stores the last offset of every key in [start, end); returns the offset up to which it has read.

    It stops early if the map is full.
    """
    offset_map.clear()
    offset_map.latest = start - 1
    with log.lock:
        segments = [segment for segment in log.segments.from_offset(start) if segment.base_offset < end]
    tracker = TxnTracker(aborted)
    breather = Breather()
    for segment in segments:
        if log.directory.stopping:
            raise CompactionAbortedError(f"{log.name} is not compacted: the broker is stopping")
        for batch in batches_of(log, segment):
            if batch.last_offset >= end:
                break
            spend(int(batch.size_in_bytes))
            if not batch.is_control and not tracker.is_aborted(batch) and batch.last_offset >= start:
                for record in batch.records():
                    breather.step()
                    key = record.key
                    if key is not None and record.offset >= start:
                        if offset_map.is_full and offset_map.get(key) < 0:
                            return offset_map.latest + 1
                        offset_map.put(key, int(record.offset))
            offset_map.latest = max(offset_map.latest, int(batch.last_offset))
    offset_map.latest = end - 1
    return end


def compact(
    log: Log,
    end: int,
    aborted: list[AbortedTxn],
    offset_map: OffsetMap,
    now_ms: int,
    truncations: int,
    spend: Spend = spend_freely,
) -> CompactionStats:
    """Rewrites the segments below `end`; aborts if `Log.truncations` is no longer `truncations`."""
    stats = CompactionStats()
    settle(log)
    with log.lock:
        segments = [segment for segment in log.segments if segment.base_offset < end]
    tracker = TxnTracker(aborted)
    for group in _groups(segments, log.config.segment_bytes, log.config.segment_index_bytes):
        _compact_group(log, group, end, offset_map, tracker, now_ms, truncations, stats, spend)
    return stats


def _groups(segments: list[Segment], max_bytes: int, max_index: int) -> list[list[Segment]]:
    """Groups of neighbours that fit into one segment."""
    groups: list[list[Segment]] = []
    size = index_size = 0
    for segment in segments:
        entries = segment.index.count * 8 + segment.time_index.count * 12
        near = bool(groups) and segment.base_offset - groups[-1][0].base_offset < 1 << 30
        if near and size + segment.size <= max_bytes and index_size + entries <= max_index:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size = index_size = 0
        size += segment.size
        index_size += entries
    return groups


def _compact_group(
    log: Log,
    group: list[Segment],
    end: int,
    offset_map: OffsetMap,
    tracker: TxnTracker,
    now_ms: int,
    truncations: int,
    stats: CompactionStats,
    spend: Spend,
) -> None:
    fresh = Segment(log.files, log.folder, group[0].base_offset, {}, now_ms, CLEANED)
    fresh.delete()  # files of an earlier attempt
    fresh.create()
    last_offsets = _last_offsets(log, end)
    try:
        for segment in group:
            with log.lock:
                ended = {txn.last_offset: txn for txn in segment.txn_index.entries()}
            for batch in batches_of(log, segment):
                spend(int(batch.size_in_bytes))
                stats.bytes_before += int(batch.size_in_bytes)
                stats.records_before += int(batch.count)
                kept = _filter(batch, end, offset_map, tracker, last_offsets, now_ms, log.config.delete_retention_ms)
                if kept is None:
                    continue
                spend(len(kept))
                position = fresh.append([kept], len(kept))
                view = BatchView(kept, 0)
                if view.is_control and view.count and int(view.base_offset) in ended:
                    fresh.txn_index.append(ended[int(view.base_offset)])
                fresh.note_batch(
                    position,
                    len(kept),
                    int(view.last_offset),
                    int(view.max_timestamp),
                    log.config.index_interval_bytes,
                )
                stats.bytes_after += len(kept)
                stats.records_after += int(view.count)
            check_unchanged(log, truncations)
        fresh.write_indexes()
        fresh.handle.sync()
        for handle in fresh.take_unsynced_indexes():
            handle.sync()
    except BaseException:
        _discard(fresh)
        raise
    swap(log, group, fresh, truncations)


def _filter(
    batch: BatchView,
    end: int,
    offset_map: OffsetMap,
    tracker: TxnTracker,
    last_offsets: dict[int, tuple[int, int]],
    now_ms: int,
    delete_retention_ms: int,
) -> bytes | None:
    """The batch without the records to drop; None if the whole batch goes."""
    if batch.last_offset >= end:
        return bytes(batch.as_view())
    spent = tracker.is_spent(batch) if batch.is_control else tracker.is_aborted(batch)
    horizon = int(batch.base_timestamp) if batch.has_delete_horizon else -1
    is_past = 0 <= horizon <= now_ms
    drop_all = spent and (is_past or not batch.is_control)
    kept = bytearray()  # one byte per record: 1 if it stays. A list of records would take a hundred times the memory.
    count = 0
    tombstones = False
    breather = Breather()
    for record in batch.records():
        breather.step()
        if drop_all:
            stays = False
        elif batch.is_control or record.offset > offset_map.latest:
            stays = True
        else:
            key = record.key
            if key is None:
                stays = False
            elif record.value_size < 0:
                stays = record.offset >= offset_map.get(key) and not is_past
                tombstones = tombstones or stays
            else:
                stays = record.offset >= offset_map.get(key)
        kept.append(1 if stays else 0)
        if stays:
            count += 1
    if not count and not _must_stay(batch, end, last_offsets):
        return None
    sets_horizon = horizon < 0 and (tombstones or (batch.is_control and spent and count > 0))
    if count == len(kept) and not sets_horizon:
        return bytes(batch.as_view())
    if sets_horizon:
        horizon = now_ms + delete_retention_ms
    return rewrite_batch(batch, kept, horizon)


def _must_stay(batch: BatchView, end: int, last_offsets: dict[int, tuple[int, int]]) -> bool:
    """Whether an empty batch must stay: it has a producer's last sequence or epoch, or ends the dirty part."""
    if batch.last_offset + 1 == end:
        return True
    last = last_offsets.get(batch.producer_id) if batch.producer_id >= 0 else None
    if last is None:
        return False
    if last[0] >= 0:
        return bool(batch.last_offset == last[0])
    return batch.is_control and bool(batch.producer_epoch == last[1])


def _last_offsets(log: Log, end: int) -> dict[int, tuple[int, int]]:
    """The end of each producer's last batch below `end`, and its epoch. A later batch may be truncated yet."""
    found: dict[int, tuple[int, int]] = {}
    with log.lock:
        for entry in log.producers.producers.values():
            below = [trace.last_offset for trace in entry.batches if trace.last_offset < end]
            found[entry.producer_id] = (below[-1] if below else entry.last_offset, entry.epoch)
    return found


def check_unchanged(log: Log, truncations: int) -> None:
    if log.closed or log.moving or log.directory.offline or log.directory.stopping or log.truncations != truncations:
        raise CompactionAbortedError(f"{log.name} was truncated, closed or moved during the compaction")


def swap(log: Log, old: list[Segment], fresh: Segment, truncations: int) -> None:
    """Replaces old segments by a new one, if the log was not truncated meanwhile.

    1. Under the lock: rename `.cleaned` to `.swap`.
    2. Without it: sync the folder. A truncation at this point undoes the swap (see `swapping`); otherwise a start would
       complete it and bring the truncated records back.
    3. Under the lock: the log gets the new segment; the old ones become `.deleted`, and `.swap` gets its final name.
    4. Without it: sync the folder.
    """
    try:
        with log.lock:
            check_unchanged(log, truncations)
            offer(log, fresh)
        log.files.sync_dir(fresh.folder)
        with log.lock:
            check_unchanged(log, truncations)
            try:
                take(log, old, fresh)
            except OSError as error:
                # The names on the disk and in memory differ; `Log.mend` or the next start completes the swap.
                log.break_off("a compaction failed halfway", error)
                raise
            fresh.index.file.release()
            fresh.time_index.file.release()
    except BaseException:
        with log.lock:
            # If it cannot be deleted, `swapping` keeps it, for the next truncation or compaction to delete.
            if fresh not in log.segments and _discard(fresh) and log.swapping is fresh:
                log.swapping = None
        raise
    log.files.sync_dir(fresh.folder)
    with log.lock:
        if log.swapping is fresh:
            log.swapping = None


def _discard(fresh: Segment) -> bool:
    """Deletes the segment of an aborted compaction; False if that fails. Does not raise, to keep the first error."""
    try:
        fresh.delete()
    except OSError as error:
        logger.warning("the segment of an aborted compaction cannot be deleted: %s", error)
        return False
    return True


def batches_of(log: Log, segment: Segment) -> Iterator[BatchView]:
    """Every batch of a sealed segment, with a valid CRC.

    Damage ends the compaction: a rewritten batch would get a valid CRC over bad bytes.
    """
    with log.lock:
        handle = segment.handle
        size = segment.size
    scan = Scan(handle, 0, size)
    while scan.step():
        view = BatchView(handle.read(int(scan.size), int(scan.position)), 0)
        if not view.crc_is_valid():
            raise CorruptFileError(segment.path(LOG), f"the batch at byte {scan.position} is damaged")
        yield view
    if scan.position + scan.size != size:
        raise CorruptFileError(segment.path(LOG), f"no batch begins at byte {scan.position + scan.size}")
