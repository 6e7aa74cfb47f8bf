"""Compaction of one log: of each key only the last record stays, at its old offset.

    before   0:a=1  1:b=2  2:a=3  3:c=4  4:b=-     (- is a tombstone: the key is deleted)
    after                  2:a=3  3:c=4  4:b=-     and, once delete.retention.ms has passed, 2:a=3  3:c=4

1. `build_map` reads the dirty part, from where the last compaction stopped, and notes the last offset of every key.
2. `compact` copies the segments from the beginning of the log up to there into new ones, `.cleaned`, without the
   records that the map knows to be outdated; small neighbours become one.
3. `swap` puts them in place: `.cleaned` becomes `.swap`, which a start completes, and then the old segments go.

What survives keeps its offset, and a batch keeps its first and last offset, so there are holes and no reader minds. A
batch that tells the last sequence of a live producer, and the last batch of the run, stay though empty. A batch with a
tombstone, or a marker with nothing left of its transaction, gets a delete horizon: from then on it may go (KIP-534).

Blocks; runs on a worker thread that holds the log's `replacing`. The log's lock is held only to look at the segments
and to rename files, never while the disk syncs. So everything else may go on meanwhile: idle files are closed
(`batches_of` keeps its own handle), the log is truncated, or deleted with its folder. After a truncation the map knows
offsets that are gone, and the segments below `end` may be anything, even the active one; `truncations`, counted when
the dirty part was chosen, shows that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from ixion.log.breather import Breather
from ixion.log.corrupt import CorruptFileError
from ixion.log.log import Log
from ixion.log.names import CLEANED, LOG
from ixion.log.offset_map import OffsetMap
from ixion.log.rewrite import rewrite_batch
from ixion.log.scan import Scan
from ixion.log.segment import Segment
from ixion.log.swapping import offer, settle, take
from ixion.log.txn_index import AbortedTxn
from ixion.log.txn_tracker import TxnTracker
from ixion.records.batch import BatchView

logger = logging.getLogger(__name__)

# Called with every number of bytes before they are read or written; sleeps if that was too fast.
Spend = Callable[[int], None]


def spend_freely(_size: int) -> None:
    """No limit."""


class CompactionAbortedError(Exception):
    """The log was truncated or closed under the compaction; nothing was changed."""


class CompactionStats:
    __slots__ = ("bytes_after", "bytes_before", "records_after", "records_before")

    def __init__(self) -> None:
        self.bytes_before = 0
        self.bytes_after = 0
        self.records_before = 0
        self.records_after = 0


def build_map(log: Log, start: int, end: int, offset_map: OffsetMap, spend: Spend = spend_freely) -> int:
    """Notes the last offset of every key in [start, end); returns the offset that it came to.

    It stops early when the map is full.
    """
    offset_map.clear()
    offset_map.latest = start - 1
    with log.lock:
        segments = [segment for segment in log.segments.from_offset(start) if segment.base_offset < end]
        aborted = _aborted(segments)
    tracker = TxnTracker()
    tracker.add(aborted)
    breather = Breather()
    for segment in segments:
        if log.directory.stopping:
            raise CompactionAbortedError(f"{log.name} is not compacted: the broker stops")
        for batch in batches_of(log, segment):
            if batch.base_offset >= end:
                break
            spend(int(batch.size_in_bytes))
            if batch.is_control:
                tracker.is_spent(batch)
            elif not tracker.is_aborted(batch) and batch.last_offset >= start:
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
    log: Log, end: int, offset_map: OffsetMap, now_ms: int, truncations: int, spend: Spend = spend_freely
) -> CompactionStats:
    """Rewrites the segments below `end`, unless the log has been truncated more than `truncations` times by then."""
    stats = CompactionStats()
    settle(log)
    with log.lock:
        segments = [segment for segment in log.segments if segment.base_offset < end]
    tracker = TxnTracker()
    for group in _groups(segments, log.config.segment_bytes, log.config.segment_index_bytes):
        _compact_group(log, group, end, offset_map, tracker, now_ms, truncations, stats, spend)
    return stats


def _groups(segments: list[Segment], max_bytes: int, max_index: int) -> list[list[Segment]]:
    """Neighbours that fit into one segment together."""
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
    fresh.delete()  # what an earlier attempt may have left
    fresh.create()
    tracker.index = fresh.txn_index
    last_offsets = _last_offsets(log)
    try:
        for segment in group:
            with log.lock:
                aborted = _aborted([segment])
            tracker.add(aborted)
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
    """What stays of a batch; None if nothing does."""
    spent = tracker.is_spent(batch) if batch.is_control else tracker.is_aborted(batch)
    horizon = int(batch.base_timestamp) if batch.has_delete_horizon else -1
    is_past = 0 <= horizon <= now_ms
    drop_all = spent and (is_past or not batch.is_control)
    kept = bytearray()  # of each record, whether it stays; the records themselves would take a hundred times the memory
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
    """Whether it must stay though empty: for a producer's last sequence or epoch, or as the last one of the run."""
    if batch.last_offset + 1 == end:
        return True
    last = last_offsets.get(batch.producer_id) if batch.producer_id >= 0 else None
    if last is None:
        return False
    if last[0] >= 0:
        return bool(batch.last_offset == last[0])
    return batch.is_control and bool(batch.producer_epoch == last[1])


def _last_offsets(log: Log) -> dict[int, tuple[int, int]]:
    with log.lock:
        return {entry.producer_id: (entry.last_offset, entry.epoch) for entry in log.producers.producers.values()}


def _aborted(segments: list[Segment]) -> list[AbortedTxn]:
    found: list[AbortedTxn] = []
    for segment in segments:
        found += segment.txn_index.entries()
    return found


def check_unchanged(log: Log, truncations: int) -> None:
    if log.closed or log.directory.offline or log.directory.stopping or log.truncations != truncations:
        raise CompactionAbortedError(f"{log.name} was truncated or closed under the compaction")


def swap(log: Log, old: list[Segment], fresh: Segment, truncations: int) -> None:
    """Puts a new segment in the place of old ones, if the log is still as it was.

    1. Under the lock: `.cleaned` becomes `.swap`.
    2. Without it: the folder is synced. A truncation that comes now undoes the swap (see `swapping`), or a start would
       complete it and bring the truncated records back.
    3. Under the lock: the log takes the new segment, the old ones become `.deleted`, and `.swap` gets its proper name.
    4. Without it: the folder is synced.
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
                # Names on the disk and in memory differ; `Log.mend` or the next start completes the swap.
                log.break_off("a compaction failed halfway", error)
                raise
            fresh.index.file.release()
            fresh.time_index.file.release()
    except BaseException:
        with log.lock:
            # If it cannot be deleted, the next truncation or compaction must still know of it.
            if fresh not in log.segments and _discard(fresh) and log.swapping is fresh:
                log.swapping = None
        raise
    log.files.sync_dir(fresh.folder)
    with log.lock:
        if log.swapping is fresh:
            log.swapping = None


def _discard(fresh: Segment) -> bool:
    """Deletes the segment of an aborted compaction; False if that fails. Raises nothing that would hide the cause."""
    try:
        fresh.delete()
    except OSError as error:
        logger.warning("a segment that an aborted compaction wrote cannot be deleted: %s", error)
        return False
    return True


def batches_of(log: Log, segment: Segment) -> Iterator[BatchView]:
    """Every batch of a sealed segment, whole and sound.

    Damage ends the compaction: rewriting a batch would put a good checksum over bad bytes.
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
