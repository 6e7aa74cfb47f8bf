"""Broken brokers whose logs lose or keep what they should not: compaction, retention, DeleteRecords."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from devtools.sim.mutate import put
from ixion.broker.coordinators.group.stored_offsets import StoredOffsets
from ixion.broker.log import cleaner, compaction, retention
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.broker.log.offset_map import OffsetMap
from ixion.broker.log.rewrite import rewrite_batch
from ixion.broker.replica.partition import Partition
from ixion.language.model.errors import ErrorCode


def aborted_replaces() -> None:
    """Compaction takes an aborted record for the last one of its key."""
    put(cleaner, "find_aborted", lambda *_: [])


def compact_uncommitted() -> None:
    """Compaction goes up to the active segment, whatever is committed and decided."""
    put(cleaner, "limit_of", lambda log, _: log.end_offset)


def first_of_key() -> None:
    """Compaction keeps the first record of each key in the dirty part, not the last."""
    real = OffsetMap.put

    def store(self: OffsetMap, key: bytes, offset: int) -> None:
        if self.get(key) < 0:
            real(self, key, offset)

    put(OffsetMap, "put", store)
    put(compaction, "_filter", _filter_first)


def _filter_first(batch: Any, end: int, offsets: OffsetMap, *_: Any) -> bytes | None:
    if batch.last_offset >= end or batch.is_control:
        return bytes(batch.as_view())
    kept = bytearray(each.offset == offsets.get(each.key) or offsets.get(each.key) < 0 for each in batch.records())
    return rewrite_batch(batch, kept, -1) if any(kept) else None


def tombstones_at_once() -> None:
    """Compaction drops tombstones without a look at delete.retention.ms."""
    real = compaction._filter
    put(compaction, "_filter", lambda *given: cast(Any, real)(*given[:-1], 0))


def oldest_counts() -> None:
    """Retention deletes a segment once its first record is too old."""

    def too_old(log: Log, now_ms: int) -> int:
        count = 0
        for slot in range(len(log.segments)):
            segment = log.segments.at(slot)
            segment.load_first_timestamp()
            if not retention._deletable(log, slot) or now_ms - segment.first_timestamp <= log.config.retention_ms:
                break
            count += 1
        return count if log.config.retention_ms >= 0 else 0

    put(retention, "_too_old", too_old)


def deleted_by_leader() -> None:
    """DeleteRecords is answered when the leader has deleted the records."""
    put(Partition, "low_watermark", property(lambda self: self.log.log_start))


def log_start_forgotten() -> None:
    """A start does not read the checkpoint of the log starts, so that deleted records are back."""
    put(LogDirectory, "log_starts", property(lambda _: {}, lambda *_: None))


def groups_come_back() -> None:
    """DeleteGroups writes no tombstones, so that a group is back when its coordinator moves."""

    def forget_group(_self: StoredOffsets, shard: Any, group: Any, done: Callable[[ErrorCode], None]) -> None:
        del shard.groups[group.group_id]
        shard.offsets.pop(group.group_id, None)
        done(ErrorCode.NONE)

    put(StoredOffsets, "forget_group", forget_group)


LOG_MUTANTS: Final[tuple[Callable[[], None], ...]] = (
    aborted_replaces,
    compact_uncommitted,
    first_of_key,
    tombstones_at_once,
    oldest_counts,
    deleted_by_leader,
    log_start_forgotten,
    groups_come_back,
)
