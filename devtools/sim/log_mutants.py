"""Broken brokers whose logs lose or keep what they should not: compaction, retention, deletions, settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from devtools.sim.mutate import put
from ixion.broker.coordinators.group import records, stored_offsets
from ixion.broker.coordinators.group.stored_offsets import StoredOffsets
from ixion.broker.log import cleaner, compaction, prepare, retention
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.broker.log.offset_map import OffsetMap
from ixion.broker.log.rewrite import rewrite_batch
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.language.model.errors import ErrorCode
from ixion.language.records.layout import BASE_SEQUENCE, PRODUCER_ID
from ixion.language.records.patch import patch_crc
from ixion.language.records.recode import recode


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


def never_too_old() -> None:
    """Retention deletes nothing because of its age."""
    put(retention, "_too_old", lambda *_: 0)


def compressed_is_kept() -> None:
    """Compaction copies compressed batches as they are."""
    real = compaction._filter

    def keep(batch: Any, *given: Any) -> bytes | None:
        found = cast(Any, real)(batch, *given)
        return bytes(batch.as_view()) if batch.codec and not batch.is_control else found

    put(compaction, "_filter", keep)


def recoded_without_producer() -> None:
    """A batch that gets the compression of its topic loses its producer and its sequence numbers."""

    def lose(*given: Any) -> bytearray:
        made = recode(*given)
        made[PRODUCER_ID : BASE_SEQUENCE + 4] = b"\xff" * (BASE_SEQUENCE + 4 - PRODUCER_ID)
        patch_crc(made, 0)
        return made

    put(prepare, "recode", lose)


def followers_keep_settings() -> None:
    """New settings of a topic reach the logs of its leaders only."""
    real = ReplicaManager.reconfigure

    def reconfigure(self: ReplicaManager, topic: str) -> None:
        if any(each.leads for each in self.partitions.values() if each.topic == topic):
            real(self, topic)

    put(ReplicaManager, "reconfigure", reconfigure)


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


def groups_gone_at_once() -> None:
    """DeleteGroups is answered before its tombstones are written."""
    real = StoredOffsets.forget_group

    def forget_group(self: StoredOffsets, shard: Any, group: Any, done: Callable[[ErrorCode], None]) -> None:
        real(self, shard, group, lambda _: None)
        done(ErrorCode.NONE)

    put(StoredOffsets, "forget_group", forget_group)


def names_of_groups_are_cut() -> None:
    """The stored key of a committed offset has the first 255 characters of the group's name."""
    real = records.offset_key
    put(records, "offset_key", lambda group_id, partition: real(group_id[:255], partition))


def long_topics_survive() -> None:
    """The tombstone of a committed offset has the first 200 characters of the topic's name."""
    real = records.offset_tombstone
    put(stored_offsets, "offset_tombstone", lambda group_id, place: real(group_id, (place[0][:200], place[1])))


LOG_MUTANTS: Final[tuple[Callable[[], None], ...]] = (
    aborted_replaces,
    compact_uncommitted,
    first_of_key,
    tombstones_at_once,
    oldest_counts,
    never_too_old,
    compressed_is_kept,
    recoded_without_producer,
    followers_keep_settings,
    deleted_by_leader,
    log_start_forgotten,
    groups_come_back,
    groups_gone_at_once,
    names_of_groups_are_cut,
    long_topics_survive,
)
