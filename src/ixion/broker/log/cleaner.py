"""Chooses the dirtiest log, compacts it, and stores the offset up to which it is clean.

The dirty part of a log begins where its last compaction stopped (`cleaner-offset-checkpoint`). It ends before the first
record that must not be compacted yet: the active segment, records younger than min.compaction.lag.ms, open
transactions, records that are not due yet (`Bound.VISIBLE_STABLE`). A log is due when the dirty part is more than
min.cleanable.dirty.ratio of the clean and the dirty part together, or when its oldest dirty record is older than
max.compaction.lag.ms. The log with the highest ratio goes first.

One thread calls `clean_dirtiest` repeatedly. Meanwhile its map of keys takes up to
log.cleaner.dedupe.buffer.size bytes.
"""

from __future__ import annotations

import logging
import math
import threading

from ixion.broker.log import checkpoint
from ixion.broker.log.compaction import (
    CompactionAbortedError,
    CompactionStats,
    build_map,
    check_unchanged,
    compact,
    find_aborted,
)
from ixion.broker.log.config import NEVER
from ixion.broker.log.corrupt import CorruptFileError, DamagedIndexError
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.broker.log.offset_map import LOAD, OffsetMap
from ixion.broker.log.segment import Segment
from ixion.broker.log.throttle import Throttle
from ixion.broker.log.view import Bound, limit_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class DirtyPart:
    """The dirty part of a log: offsets [start, end), and the sizes of the clean and the dirty part.

    Valid until the log is truncated.
    """

    __slots__ = ("clean_bytes", "dirty_bytes", "end", "log", "must", "start", "truncations")

    def __init__(self, log: Log, start: int, end: int, clean_bytes: int, dirty_bytes: int, must: bool) -> None:
        self.log = log
        self.truncations = log.truncations
        self.start = start
        self.end = end
        self.clean_bytes = clean_bytes
        self.dirty_bytes = dirty_bytes
        self.must = must

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def dirty_part(log: Log, checkpointed: int, now_ms: int) -> DirtyPart:
    with log.lock:
        active = log.segments.active
        start = checkpointed
        if not log.log_start <= start <= active.base_offset:
            start = log.log_start
        end = min(active.base_offset, _start_of_batch(log, limit_of(log, Bound.VISIBLE_STABLE)))
        clean_bytes = dirty_bytes = 0
        oldest = -1
        for slot in range(len(log.segments) - 1):
            segment = log.segments.at(slot)
            below = _bytes_below(segment, log.segments.end_of(slot, active.base_offset), start)
            clean_bytes += below
            if below == segment.size:
                continue
            is_young = segment.max_timestamp > now_ms - log.config.min_compaction_lag_ms
            if is_young and log.config.min_compaction_lag_ms > 0:
                end = min(end, segment.base_offset)
            if max(segment.base_offset, start) >= end:
                break
            dirty_bytes += segment.size - below
            if oldest < 0:
                segment.load_first_timestamp()
                oldest = segment.first_timestamp
        lag = log.config.max_compaction_lag_ms
        must = lag < NEVER and dirty_bytes > 0 and 0 <= oldest < now_ms - lag
        return DirtyPart(log, start, max(end, start), clean_bytes, dirty_bytes, must)


def _bytes_below(segment: Segment, end: int, offset: int) -> int:
    """How much of a segment that ends before `end` lies below `offset`.

    The last compaction may have stopped within it, at a transaction that was open then.
    """
    if end <= offset:
        return segment.size
    if segment.base_offset >= offset:
        return 0
    place = segment.locate(offset)
    return segment.size if place is None else place.position


def _start_of_batch(log: Log, offset: int) -> int:
    """A bound may lie within a batch, which consumers then do not see: compaction must not use it either."""
    if offset <= log.segments.first.base_offset:
        return offset
    place = log.segments.at(log.segments.slot_of(offset)).locate(offset)
    return offset if place is None else min(offset, place.base_offset)


class Cleaner:
    def __init__(
        self,
        manager: LogManager,
        dedupe_buffer_bytes: int = 128 << 20,
        load_factor: float = LOAD,
        throttle: Throttle | None = None,
    ) -> None:
        self._manager = manager
        self._memory = dedupe_buffer_bytes
        self._load = load_factor
        self._throttle = throttle if throttle is not None else Throttle(math.inf)
        self._lock = threading.Lock()
        self.uncleanable: dict[TopicPartition, str] = {}  # logs not compacted until the next start, and why

    def reconfigure(self, dedupe_buffer_bytes: int, load_factor: float, bytes_per_second: float) -> None:
        """Takes effect with the next compaction. Only the thread that compacts calls it."""
        self._throttle.bytes_per_second = bytes_per_second
        self._memory = dedupe_buffer_bytes
        self._load = load_factor

    def due(self, now_ms: int) -> list[DirtyPart]:
        """The logs to compact, the dirtiest first."""
        parts = []
        cleaned = {
            directory.state: directory.checkpointed(checkpoint.CLEANER_OFFSETS)
            for directory in self._manager.directories
        }
        for log in list(self._manager.logs.values()):
            if log.closed or log.moving or log.directory.offline or log.truncating >= 0:
                continue
            if log.config.compact:
                key = (log.topic, log.partition)
                if key in self.uncleanable:
                    continue
                try:
                    part = dirty_part(log, cleaned[log.directory].get(key, -1), now_ms)
                except OSError as error:
                    if not log.closed:  # a closed log was deleted just now
                        log.directory.fail(f"finding the dirty part of {log.name}", error)
                    continue
                except DamagedIndexError as lie:
                    log.note_damage(lie)
                    continue
                except CorruptFileError as damage:
                    self._give_up(log, damage)
                    continue
                if part.must or (part.dirty_bytes and part.ratio > log.config.min_cleanable_dirty_ratio):
                    parts.append(part)
        return sorted(parts, key=lambda part: (part.must, part.ratio), reverse=True)

    def clean_dirtiest(self, now_ms: int) -> CompactionStats | None:
        """Compacts one log; None if no log is due."""
        with self._lock:
            for part in self.due(now_ms):
                try:
                    return self._clean(part, now_ms)
                except CompactionAbortedError as error:
                    logger.info("%s", error)
                except DamagedIndexError as damage:
                    part.log.note_damage(damage)
                except OSError as error:
                    part.log.directory.fail(f"compacting {part.log.name}", error)
                except Exception as error:
                    if isinstance(error, KafkaError) and error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                        logger.error("compacting %s: %s", part.log.name, error)  # retried: the disk may have room then
                    else:
                        self._give_up(part.log, error)
            return None

    def _give_up(self, log: Log, error: Exception) -> None:
        """Skips a log that cannot be compacted, so that the others still are."""
        is_bug = not isinstance(error, (KafkaError, CorruptFileError))
        logger.error("%s cannot be compacted: %s", log.name, error, exc_info=is_bug)
        self.uncleanable[log.topic, log.partition] = str(error)

    def _clean(self, part: DirtyPart, now_ms: int) -> CompactionStats:
        log = part.log
        offsets = OffsetMap(self._memory, self._load)
        throttle = self._throttle

        def spend(size: int) -> None:
            throttle.spend(size, lambda: log.directory.stopping or log.closed)

        with log.replacing:
            try:
                aborted = find_aborted(log, part.end)
                end = build_map(log, part.start, part.end, aborted, offsets, spend)
                stats = compact(log, end, aborted, offsets, now_ms, part.truncations, spend)
            except (KafkaError, CorruptFileError, OSError) as error:
                # If the log was deleted or truncated, a missing or short file is no fault of the disk.
                try:
                    check_unchanged(log, part.truncations)
                except CompactionAbortedError as aborted:
                    raise aborted from error
                raise
        self._manager.checkpoints.write_cleaner_offset(log, end)
        logger.info(
            "compacted %s up to %d: kept %d of %d records, %d of %d bytes",
            log.name,
            end,
            stats.records_after,
            stats.records_before,
            stats.bytes_after,
            stats.bytes_before,
        )
        return stats
