"""A partition's log: append, offsets, roll, truncate, flush.

The offsets of a log, each exclusive at its upper side:

    log_start ......... recovery_point ......... high_watermark ......... end_offset (LEO)
      |  first offset that     |  everything below is    |  consumers read         |  next offset to
      |  is not deleted        |  flushed                |  below it               |  be written

`last_stable_offset` lies between the log start and the high watermark: below it every transaction is decided.
`recovery_point` moves with `flush`; recovery begins there after a crash. It may be anywhere up to the end.

Threads. One lock per log guards everything; each public method takes it. An append holds it for one write to the page
cache. Blocking work is done without the lock, through handles that keep their files open (see `handle`): `flushing`
syncs, and `compaction` reads and writes, while the event loop appends and reads.

An append is atomic: it opens and reads all it needs before its one write, and after the write it changes only memory.
If a write fails and its bytes cannot be cut off, the file may have more bytes than the log: then the log is `broken`,
and refuses appends until `mend`, a truncation or the next start has repaired the file.

An error of the disk (OSError) takes the log's whole directory offline; see `directory_state`.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final, Protocol

from librt.threading import Lock

from ixion.broker.log import checkpoint
from ixion.broker.log.append import append_prepared
from ixion.broker.log.aside import Aside
from ixion.broker.log.checked_batch import CheckedBatch
from ixion.broker.log.closing import close
from ixion.broker.log.config import NEVER, LogConfig
from ixion.broker.log.corrupt import CorruptFileError, DamagedIndexError
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.epochs import EpochCache
from ixion.broker.log.files import Files
from ixion.broker.log.flushing import flush
from ixion.broker.log.prepare import (
    AppendInfo,
    Origin,
    Prepared,
    as_stored,
    place,
    prepare_follower,
    prepare_leader,
    split_to_fit,
    topic_rules,
)
from ixion.broker.log.producer_state import ProducerState
from ixion.broker.log.reindexing import rebuild_damaged
from ixion.broker.log.replay import add_to_draft
from ixion.broker.log.rolling import roll_at
from ixion.broker.log.segment import Segment
from ixion.broker.log.segment_list import SegmentList
from ixion.broker.log.snapshots import Snapshots
from ixion.broker.log.truncation import SYNCING, Cut, restart_at, truncate
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.layout import Buffer
from ixion.language.records.validate import TopicRules, Validated, validate_produce

logger = logging.getLogger(__name__)

# Values of `visible_end`.
NO_BARRIER: Final = (1 << 63) - 1  # records are delivered at once
UNKNOWN: Final = -1  # nobody has searched yet for the first record that is not due


class Taker(Protocol):
    """Takes records with a delivery delay out of a batch; see `append_scheduled`."""

    def take(self, checked: Validated, first_offset: int, rules: TopicRules) -> bytes: ...


class Log:
    def __init__(
        self,
        *,
        directory: DirectoryState,
        folder: str,
        topic: str,
        partition: int,
        config: LogConfig,
        files: Files,
        clock_ms: Callable[[], int],
    ) -> None:
        """An empty shell; `log_loader.open_log` fills it from the disk."""
        self.directory: Final = directory
        self.folder = folder
        self.topic: Final = topic
        self.partition: Final = partition
        self.topic_id: bytes | None = None
        self.files: Final = files
        self.clock_ms: Final = clock_ms
        self.lock: Final = Lock()
        self.replacing: Final = Lock()  # held to replace sealed segments; taken before `lock`
        self.flushing: Final = Lock()  # held to flush; taken before `lock`
        self.segments = SegmentList()
        self.epochs = EpochCache(files, os.path.join(folder, checkpoint.LEADER_EPOCHS))
        self.producers = ProducerState()
        self.snapshots = Snapshots(files, folder)
        self.aside = Aside(files, folder, clock_ms)
        self.log_start = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.last_flush_ms = clock_ms()
        self.doomed: list[tuple[int, Segment]] = []  # (when to delete, segment), see retention
        self.swapping: Segment | None = None  # a compaction is putting it in place; see `swapping`
        self.swap_taken = False  # `swapping` is already one of `segments`
        self.replaced: list[Segment] = []  # segments that `swapping` replaces, not yet marked as deleted
        self.closed = False
        self.moving = False  # it is copied to another directory: no compaction meanwhile; see `partition_logs`
        self.must_rewrite = False  # a sync failed on a full disk: the next flush writes unflushed bytes again
        self.broken = ""  # why the log refuses appends until it is truncated, mended or recovered
        self.damaged_indexes: dict[int, DamagedIndexError] = {}  # by base offset of the segment; see `reindexing`
        self.truncating = -1  # the end of the log after an unfinished truncation; see `truncation`
        self.restarting = False  # the unfinished truncation drops everything
        self.config = config
        self.visible_end = UNKNOWN if config.delivery_delay_ms else NO_BARRIER  # consumers read below it
        self.rules = topic_rules(config)
        self.jitter_ms = 0  # the active segment rolls this much earlier
        self.truncations = 0  # truncations begun; a flush or a compaction that sees it change starts over or aborts
        self.unsynced_cut: Cut | None = None  # the last truncation, until it is on the disk
        self.new_names = False  # files were created or renamed since the folder was last synced

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def check_not_closed(self) -> None:
        """KafkaError if the log was closed, deleted, or moved to another directory."""
        if self.closed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} in {self.directory.path} is closed")

    def check_open(self) -> None:
        """KafkaError if the log cannot be read."""
        self.check_not_closed()
        if self.truncating >= 0:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} must be recovered: {self.broken}")

    def check_appendable(self) -> None:
        self.check_open()
        self.directory.check_writable()
        if self.broken:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} refuses appends: {self.broken}")

    def reconfigure(self, config: LogConfig) -> None:
        with self.lock:
            if not config.delivery_delay_ms:
                self.visible_end = NO_BARRIER
            elif not self.config.delivery_delay_ms:
                self.visible_end = UNKNOWN  # until `replica.delivery_delay` sets it
            self.config = config
            self.rules = topic_rules(config)

    # Appending.

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        now_ms: int = -1,
        checked: CheckedBatch | None = None,
    ) -> AppendInfo:
        """Appends batches of a client or a coordinator, and gives them their offsets and the leader epoch.

        `checked` is the batch of a client if it was checked before.
        """
        with self.lock:
            self.check_appendable()
            if len(records) == 0 and origin != Origin.CLIENT:
                return AppendInfo(-1, -1, self.log_start)
            if now_ms < 0:
                now_ms = self.clock_ms()
            stored: BatchView | None = None
            if checked is not None:
                found = checked.result(self.rules)
                stored = checked.stored
                if stored is None:  # `found` has delivery headers, which count no longer
                    stored = as_stored(found, records, self.rules)
            prepared = prepare_leader(records, self.rules, origin, self.end_offset, leader_epoch, now_ms, stored)
            if origin == Origin.CLIENT:
                duplicate = self._find_duplicate(prepared)
                if duplicate is not None:
                    return duplicate
            info = append_prepared(self, prepared, leader_epoch, True, now_ms, origin)
            if self.config.message_timestamp_type == "LogAppendTime":
                info.append_time = now_ms
            return info

    def append_scheduled(
        self, records: Buffer, leader_epoch: int, schedule: Taker, ready: CheckedBatch | None = None
    ) -> AppendInfo:
        """`append_as_leader` for a topic whose records may have a delivery delay of their own.

        `schedule.take` writes such records elsewhere, with their offsets here, and returns the batch without them. It
        is called after all checks, when only the disk can fail the append.
        """
        with self.lock:
            self.check_appendable()
            now_ms = self.clock_ms()
            rules = self.rules
            checked = validate_produce(records, rules, now_ms) if ready is None else ready.result(rules)
            view = checked.batch
            if view.producer_id < -1:
                raise KafkaError(ErrorCode.INVALID_RECORD, f"producer id {view.producer_id} is not valid")
            if ready is not None and ready.stored is not None:
                view = ready.stored
            elif not checked.wishes and not rules.has_target:
                view = as_stored(checked, records, rules)
            prepared = place([view], rules, self.end_offset, leader_epoch, now_ms)
            duplicate = self._find_duplicate(prepared)
            if duplicate is not None:
                return duplicate
            if checked.wishes or (self.config.delivery_delay_target and view.count):
                if view.producer_id >= 0:
                    draft = self.producers.draft(view.producer_id, True)
                    add_to_draft(draft, view, self.end_offset)
                left = schedule.take(checked, self.end_offset, rules)
                prepared = place([BatchView(left, 0)], rules, self.end_offset, leader_epoch, now_ms)
            info = append_prepared(self, prepared, leader_epoch, True, now_ms, Origin.CLIENT)
            if self.config.message_timestamp_type == "LogAppendTime":
                info.append_time = now_ms
            return info

    def append_as_follower(self, records: Buffer, now_ms: int = -1) -> AppendInfo:
        """Appends batches of the leader unchanged. An incomplete last batch is left for the next fetch."""
        with self.lock:
            self.check_appendable()
            prepared = prepare_follower(records, self.end_offset)
            if not prepared.views:
                return AppendInfo(-1, -1, self.log_start)
            if now_ms < 0:
                now_ms = self.clock_ms()
            parts = split_to_fit(prepared, self.config.segment_bytes)
            info = append_prepared(self, parts[0], -1, False, now_ms, Origin.REPLICATION)
            for part in parts[1:]:
                info.add(append_prepared(self, part, -1, False, now_ms, Origin.REPLICATION))
            return info

    def _find_duplicate(self, prepared: Prepared) -> AppendInfo | None:
        view = prepared.views[0]
        if view.producer_id < 0 or not self.producers.producers:
            return None
        trace = self.producers.find_duplicate(
            view.producer_id, view.producer_epoch, view.base_sequence, view.last_sequence
        )
        if trace is None:
            return None
        info = AppendInfo(trace.first_offset, trace.last_offset, self.log_start)
        info.append_time = trace.timestamp if self.config.message_timestamp_type == "LogAppendTime" else -1
        info.max_timestamp = trace.timestamp
        info.duplicate = True
        return info

    def break_off(self, why: str, error: BaseException) -> KafkaError:
        """Marks the log as broken; returns the error to raise."""
        self.broken = f"{why}: {error}"
        logger.error("%s in %s refuses appends until it is recovered: %s", self.name, self.directory.path, self.broken)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {self.broken}")

    def note_damage(self, damage: CorruptFileError) -> KafkaError:
        """Returns the error to raise. A damaged index is rebuilt by the next `mend`."""
        if not isinstance(damage, DamagedIndexError):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(damage))
        self.damaged_indexes.setdefault(damage.base_offset, damage)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"an index is damaged and will be rebuilt: {damage}")

    # Rolling.

    def roll(self) -> None:
        """Seals the active segment, unless it is empty, and starts a new one at the end of the log."""
        with self.lock:
            try:
                roll_at(self, self.end_offset, self.clock_ms())
            except OSError as error:
                raise self.directory.fail(f"rolling {self.name}", error) from error
            except CorruptFileError as damage:
                raise self.note_damage(damage) from damage

    # Offsets.

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset: every transaction below it is decided. At most the high watermark."""
        first_unstable = self.producers.first_unstable_offset()
        if 0 <= first_unstable < self.high_watermark:
            return max(first_unstable, self.log_start)
        return self.high_watermark

    @property
    def size(self) -> int:
        return self.segments.total_size

    def raise_high_watermark(self, offset: int) -> bool:
        """Moves the high watermark forward only; False if it does not move."""
        if offset > self.end_offset:
            raise ValueError(f"high watermark {offset} of {self.name} is beyond its end {self.end_offset}")
        if offset <= self.high_watermark:
            return False
        with self.lock:
            self.high_watermark = offset
            self.producers.on_high_watermark(offset)
        return True

    def raise_log_start(self, offset: int) -> bool:
        """Deletes the records below `offset` logically; retention deletes segments that lie wholly below it."""
        with self.lock:
            if offset > self.high_watermark:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"cannot delete records of {self.name} up to {offset}: the high watermark is {self.high_watermark}",
                )
            if offset <= self.log_start:
                return False
            self.move_log_start(offset)
            return True

    def move_log_start(self, offset: int) -> None:
        """The caller holds the lock."""
        self.log_start = offset
        self.epochs.truncate_start(offset)
        self.producers.on_high_watermark(offset)
        self.recovery_point = max(self.recovery_point, min(offset, self.segments.first.base_offset))

    def assign_epoch(self, epoch: int, start: int) -> None:
        """Starts a leader epoch: batches from `start` on have `epoch`. The next flush or close stores it."""
        with self.lock:
            self.epochs.assign(epoch, start)

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for a follower that asks where `epoch` ended; (-1, -1) if nothing is known."""
        with self.lock:
            return self.epochs.end_offset(epoch, self.end_offset)

    # Truncation.

    def truncate_to(self, offset: int) -> bool:
        """Drops everything at or after `offset`; False if the log ends there or earlier. Blocks; see `truncation`."""
        if offset < 0:
            raise ValueError(f"cannot truncate {self.name} to offset {offset}")
        with self.lock:
            if offset >= self.end_offset and not self.broken:
                # The epoch cache may have an epoch that wrote nothing here.
                self.epochs.truncate_end(max(offset, self.end_offset))
                return False
            shortens = offset < self.end_offset
        self._truncate(offset)
        return shortens

    def mend(self) -> bool:
        """Rebuilds damaged indexes, and repairs the files of a broken log. Blocks.

        False if the log was not broken.
        """
        try:
            rebuild_damaged(self)
        except OSError as error:
            raise self.directory.fail(f"rebuilding an index of {self.name}", error) from error
        with self.lock:
            if self.closed or not self.broken or self.broken == SYNCING:
                return False
        self._truncate(NEVER)
        return True

    def _truncate(self, offset: int) -> None:
        try:
            try:
                truncate(self, offset)
            except DamagedIndexError as lie:
                self.note_damage(lie)
                rebuild_damaged(self)
                truncate(self, offset)
        except OSError as error:
            raise self.directory.fail(f"truncating {self.name}", error) from error
        except CorruptFileError as damage:
            raise self.break_off("it cannot be truncated", damage) from damage

    def truncate_fully(self, offset: int) -> None:
        """Drops all records; the log continues at `offset`. Blocks; see `truncation`."""
        try:
            restart_at(self, offset)
        except OSError as error:
            raise self.directory.fail(f"truncating {self.name} fully", error) from error

    # Flushing and closing.

    def flush(self, to: int = -1) -> None:
        """Syncs everything below `to` (default: all). Blocks; call it on a worker thread."""
        flush(self, to)

    def expire_producers(self, now_ms: int) -> int:
        with self.lock:
            return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    def release_idle(self) -> None:
        """Closes the files of segments that were not used since the last call; the next use reopens them."""
        with self.lock:
            if self.closed or self.truncating >= 0:
                return
            try:
                for segment in self.segments:
                    if segment.used:
                        segment.used = False
                    elif segment.is_open:
                        self.new_names = segment.write_indexes_so_far() or self.new_names
                        segment.close()
            except OSError as error:
                raise self.directory.fail(f"closing idle files of {self.name}", error) from error

    def close(self) -> None:
        """Flushes, takes a snapshot of the producers and closes the files. The log can no longer be used.

        KafkaError if the log is not clean: the next start must recover it. Blocks.
        """
        close(self)

    def abandon(self) -> None:
        """Closes the files without writing anything, as after a crash or on a failed disk."""
        with self.lock:
            self.closed = True
            self.release_files()

    def release_files(self) -> None:
        """The caller holds the lock."""
        for segment in self.segments:
            segment.close()

    def move(self, folder: str, *, in_use: bool = False) -> None:
        """Renames the folder and syncs the new name. If only the sync fails, the log has the new name.

        `in_use`: KafkaError if the log is closed, because a deletion may just have renamed its folder.
        """
        with self.lock:
            if in_use:
                self.check_not_closed()
            old = self.folder
            try:
                self.files.rename(old, folder)
            except OSError as error:
                raise self.directory.fail(f"renaming {old} to {folder}", error) from error
            self.folder = folder
            self.epochs.move(os.path.join(folder, checkpoint.LEADER_EPOCHS))
            self.snapshots.move(folder)
            self.aside.move(folder)
            for segment in self.segments:
                segment.move(folder)
            for segment in self.replaced:
                segment.move(folder)
            if self.swapping is not None and not self.swap_taken:
                self.swapping.move(folder)
            for _, segment in self.doomed:
                segment.move(folder)
        try:
            self.files.sync_dir(os.path.dirname(folder))
        except OSError as error:
            raise self.directory.fail(f"renaming a folder to {folder}", error) from error
