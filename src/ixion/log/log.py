"""A partition's log: append, offsets, roll, truncate, flush.

The offsets of a log, each exclusive at its upper side:

    log_start ......... recovery_point ......... high_watermark ......... end_offset (LEO)
      |  what retention and    |  what is on the disk    |  what consumers see     |  next to be written
      |  deletion left         |  for certain            |                         |

`last_stable_offset` lies between the log start and the high watermark: below it every transaction is decided.
`recovery_point` moves with `flush` and is where recovery begins after a crash; it may be anywhere up to the end.

Threads. One lock per log guards everything; each public method takes it. An append holds it for one write to the page
cache. What blocks is done without it, through handles that keep their files open (see `handle`): `flushing` syncs, and
`compaction` reads and writes, while the event loop appends and reads.

An error of the disk (OSError) takes the log's whole directory offline; see `home`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from librt.threading import Lock

from ixion.log import checkpoint
from ixion.log.append import AppendInfo, Origin, Prepared, prepare_follower, prepare_leader, topic_rules
from ixion.log.config import LogConfig
from ixion.log.epochs import EpochCache
from ixion.log.files import Files
from ixion.log.flushing import flush
from ixion.log.home import Home
from ixion.log.names import DELETED
from ixion.log.offset_index import MAX_RELATIVE
from ixion.log.producer_state import Draft, EndedTxn, ProducerState
from ixion.log.replay import add_to_draft
from ixion.log.segment import Segment
from ixion.log.segments import Segments
from ixion.log.snapshots import Snapshots
from ixion.log.truncation import cut_end, restart_at
from ixion.log.txn_index import AbortedTxn
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.layout import Buffer


class Log:
    def __init__(
        self,
        *,
        home: Home,
        folder: str,
        topic: str,
        partition: int,
        config: LogConfig,
        files: Files,
        clock_ms: Callable[[], int],
    ) -> None:
        """An empty shell; `loader.open_log` fills it from the disk."""
        self.home: Final = home
        self.folder = folder
        self.topic: Final = topic
        self.partition: Final = partition
        self.topic_id: bytes | None = None
        self.files: Final = files
        self.clock_ms: Final = clock_ms
        self.lock: Final = Lock()
        self.upkeep: Final = Lock()  # held by whoever replaces sealed segments; taken before `lock`
        self.flushing: Final = Lock()  # held by whoever flushes; taken before `lock`
        self.segments = Segments()
        self.epochs = EpochCache(files, os.path.join(folder, checkpoint.LEADER_EPOCHS))
        self.producers = ProducerState()
        self.snapshots = Snapshots(files, folder)
        self.log_start = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.last_flush_ms = clock_ms()
        self.doomed: list[tuple[int, Segment]] = []  # (when to delete, segment), see retention
        self.closed = False
        self.config = config
        self._rules = topic_rules(config)
        self._jitter_ms = 0
        self.truncations = 0  # so far; a flush that finds another number has been overtaken
        self.new_names = False  # files were made or renamed since the folder was last synced

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def check_open(self) -> None:
        """Whoever still has a log that was deleted, or moved to another directory, must ask for it again."""
        if self.closed:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} in {self.home.path} is closed")

    def reconfigure(self, config: LogConfig) -> None:
        with self.lock:
            self.config = config
            self._rules = topic_rules(config)

    # Appending.

    def append_as_leader(
        self, records: Buffer, leader_epoch: int, origin: Origin = Origin.CLIENT, now_ms: int = -1
    ) -> AppendInfo:
        """Appends a client's or a coordinator's batches at the end, with offsets and epoch of this leader."""
        with self.lock:
            self.check_open()
            self.home.check_writable()
            if len(records) == 0 and origin != Origin.CLIENT:
                return AppendInfo(-1, -1, self.log_start)
            if now_ms < 0:
                now_ms = self.clock_ms()
            prepared = prepare_leader(records, self._rules, origin, self.end_offset, leader_epoch, now_ms)
            if origin == Origin.CLIENT:
                duplicate = self._find_duplicate(prepared)
                if duplicate is not None:
                    return duplicate
            info = self._append(prepared, leader_epoch, True, now_ms, origin)
            if self.config.message_timestamp_type == "LogAppendTime":
                info.append_time = now_ms
            return info

    def append_as_follower(self, records: Buffer, now_ms: int = -1) -> AppendInfo:
        """Appends batches as they came from the leader. A batch cut short at the end is left for the next fetch."""
        with self.lock:
            self.check_open()
            self.home.check_writable()
            prepared = prepare_follower(records, self.end_offset)
            if not prepared.views:
                return AppendInfo(-1, -1, self.log_start)
            return self._append(prepared, -1, False, self.clock_ms() if now_ms < 0 else now_ms, Origin.REPLICATION)

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

    def _append(
        self, prepared: Prepared, leader_epoch: int, as_leader: bool, now_ms: int, origin: Origin
    ) -> AppendInfo:
        config = self.config
        if prepared.size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"an append of {prepared.size} bytes does not fit a segment of {config.segment_bytes} bytes",
            )
        # First all that can be refused, on drafts; then the write; then, as nothing can fail any more, the rest.
        drafts: dict[int, Draft] = {}
        ended: list[EndedTxn] = []
        offset = prepared.first_offset
        max_timestamp = -1
        records = 0
        for view in prepared.views:
            if not as_leader:
                offset = int(view.base_offset)
            if view.max_timestamp > max_timestamp:
                max_timestamp = int(view.max_timestamp)
            records += int(view.count)
            if view.producer_id >= 0:
                draft = drafts.get(view.producer_id)
                if draft is None:
                    draft = drafts[view.producer_id] = self.producers.draft(view.producer_id, as_leader)
                    draft.in_sequence = origin == Origin.CLIENT
                    draft.raised_marker = origin == Origin.RAISED_MARKER
                txn = add_to_draft(draft, view, offset)
                if txn is not None:
                    ended.append(txn)
            offset += int(view.last_offset_delta) + 1
        info = AppendInfo(prepared.first_offset, prepared.last_offset, self.log_start)
        try:
            if self._should_roll(prepared, max_timestamp, now_ms):
                near = prepared.last_offset - self.end_offset <= MAX_RELATIVE
                self.roll_at(self.end_offset if near else prepared.first_offset, now_ms)
                info.rolled = True
            segment = self.segments.active
            position = segment.append(prepared.parts, prepared.size)
        except OSError as error:
            raise self.home.fail(f"appending to {self.name}", error) from error
        offset = prepared.first_offset
        epoch = leader_epoch
        for view in prepared.views:
            if not as_leader:
                offset = int(view.base_offset)
                epoch = int(view.leader_epoch)
            if epoch > self.epochs.latest:
                self.epochs.assign(epoch, offset)
            last = offset + int(view.last_offset_delta)
            size = int(view.size_in_bytes)
            segment.note_batch(position, size, last, int(view.max_timestamp), config.index_interval_bytes)
            position += size
            offset = last + 1
        self.end_offset = offset
        for draft in drafts.values():
            self.producers.apply(draft)
        for txn in ended:
            self.producers.end_txn(txn)
            if txn.aborted:
                self._note_aborted(segment, txn)
        self.producers.end_offset = offset
        info.max_timestamp = max_timestamp
        info.records = records
        info.size = prepared.size
        info.flush_due = offset - self.recovery_point >= config.flush_messages
        return info

    def _note_aborted(self, segment: Segment, txn: EndedTxn) -> None:
        try:
            segment.txn_index.append(
                AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
            )
            self.new_names = True
        except OSError as error:
            raise self.home.fail(f"noting an aborted transaction of {self.name}", error) from error

    # Rolling.

    def _should_roll(self, prepared: Prepared, max_timestamp: int, now_ms: int) -> bool:
        config = self.config
        segment = self.segments.active
        if segment.size > config.segment_bytes - prepared.size or not segment.can_hold(prepared.last_offset):
            return True
        if segment.index.is_full(config.segment_index_bytes) or segment.time_index.is_full(config.segment_index_bytes):
            return True
        if segment.size == 0:
            return False
        # A segment's age is counted in its records' own time if they have one, else by the clock.
        since = self._first_timestamp(segment)
        waited = max_timestamp - since if since >= 0 and max_timestamp >= 0 else now_ms - segment.created_ms
        limit = min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms
        return waited > limit - self._jitter_ms

    def _first_timestamp(self, segment: Segment) -> int:
        if segment.first_timestamp == -1 and segment.size:
            segment.load_first_timestamp()
        return segment.first_timestamp

    def roll(self) -> None:
        """Seals the active segment, if there is anything in it, and begins another at the end of the log."""
        with self.lock:
            try:
                self.roll_at(self.end_offset, self.clock_ms())
            except OSError as error:
                raise self.home.fail(f"rolling {self.name}", error) from error

    def roll_at(self, base_offset: int, now_ms: int) -> None:
        """The same at a given offset. The caller holds the lock."""
        active = self.segments.active
        if active.size == 0:
            if active.base_offset != base_offset:
                self.start_segment(base_offset, now_ms)
                self.segments.remove(active)
                active.delete()
            return
        active.seal()
        self.producers.end_offset = base_offset
        self.snapshots.take(self.producers, False)
        self.start_segment(base_offset, now_ms)

    def start_segment(self, base_offset: int, now_ms: int) -> None:
        """Begins a new active segment. The caller holds the lock."""
        segment = Segment(self.files, self.folder, base_offset, {}, now_ms)
        segment.create()
        self.segments.add(segment)
        self.new_names = True
        jitter = self.config.segment_jitter_ms
        self._jitter_ms = 0
        if jitter:
            from random import randrange  # most logs have none

            self._jitter_ms = randrange(min(jitter, self.config.segment_ms))

    # Offsets.

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided; never above the high watermark."""
        first_unstable = self.producers.first_unstable_offset()
        if 0 <= first_unstable < self.high_watermark:
            return max(first_unstable, self.log_start)
        return self.high_watermark

    @property
    def size(self) -> int:
        return self.segments.total_size

    def set_high_watermark(self, offset: int) -> int:
        """Moves the high watermark, kept within the log, in either direction; gives what it is now."""
        with self.lock:
            self.high_watermark = min(max(offset, self.log_start), self.end_offset)
            self.producers.on_high_watermark(self.high_watermark)
            return self.high_watermark

    def raise_high_watermark(self, offset: int) -> bool:
        """Moves it forward only; False if it stays."""
        if offset > self.end_offset:
            raise ValueError(f"high watermark {offset} of {self.name} is beyond its end {self.end_offset}")
        if offset <= self.high_watermark:
            return False
        with self.lock:
            self.high_watermark = offset
            self.producers.on_high_watermark(offset)
        return True

    def raise_log_start(self, offset: int) -> bool:
        """Deletes records below `offset`, logically: the files go when whole segments lie below it."""
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
        """A leader begins: everything from `start` on is written in `epoch`.

        If there is no room to write that down, or too many files are open, the next flush writes it.
        """
        with self.lock:
            try:
                if self.epochs.assign(epoch, start):
                    self.epochs.write(False)
            except OSError as error:
                failure = self.home.fail(f"writing the leader epochs of {self.name}", error)
                if self.home.offline:
                    raise failure from error

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for a follower that asks where `epoch` ended; (-1, -1) if nothing is known."""
        with self.lock:
            return self.epochs.end_offset(epoch, self.end_offset)

    # Truncation.

    def truncate_to(self, offset: int) -> bool:
        """Drops everything at or after `offset`; False if the log ends there or earlier."""
        if offset < 0:
            raise ValueError(f"cannot truncate {self.name} to offset {offset}")
        with self.lock:
            if offset >= self.end_offset:
                # The epochs may know of a leader that wrote nothing here.
                self.epochs.truncate_end(max(offset, self.end_offset))
                return False
            try:
                if offset < self.segments.first.base_offset:
                    restart_at(self, offset)
                else:
                    cut_end(self, offset)
            except OSError as error:
                raise self.home.fail(f"truncating {self.name} to {offset}", error) from error
            return True

    def truncate_fully(self, offset: int) -> None:
        """Drops everything and goes on at `offset`."""
        with self.lock:
            try:
                restart_at(self, offset)
            except OSError as error:
                raise self.home.fail(f"truncating {self.name} fully", error) from error

    # Flushing and closing.

    def flush(self, to: int = -1) -> None:
        """Puts everything below `to` (default: all) on the disk. Blocks; call it from a worker thread."""
        flush(self, to)

    def expire_producers(self, now_ms: int) -> int:
        with self.lock:
            return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    def release_idle(self) -> None:
        """Closes the files of segments that nobody has used since the last call; the next use opens them again."""
        with self.lock:
            if self.closed:
                return
            for segment in self.segments:
                if segment.used:
                    segment.used = False
                elif segment.is_open:
                    segment.write_indexes_so_far()
                    segment.close()

    def close(self) -> None:
        """Flushes, takes a snapshot of the producers and lets go of the files. The log cannot be used any more."""
        with self.lock:
            if self.closed:
                return
            self.segments.active.add_last_timestamp()
        self.flush()
        with self.lock:
            self.closed = True
            if not self.home.offline:
                try:
                    self.segments.active.write_indexes_so_far()
                    self.epochs.write(True)
                    self.snapshots.take(self.producers, True)
                except OSError as error:
                    raise self.home.fail(f"closing {self.name}", error) from error
            self._release()

    def abandon(self) -> None:
        """Lets go of the files and writes nothing, as a crash or a dead disk would."""
        with self.lock:
            self.closed = True
            self._release()

    def _release(self) -> None:
        for segment in self.segments:
            segment.close()

    def move(self, folder: str) -> None:
        """Renames the folder, and makes the new name durable."""
        with self.lock:
            try:
                self.files.rename(self.folder, folder)
                self.files.sync_dir(os.path.dirname(folder))
            except OSError as error:
                raise self.home.fail(f"renaming {self.folder} to {folder}", error) from error
            self.folder = folder
            self.epochs.move(os.path.join(folder, checkpoint.LEADER_EPOCHS))
            self.snapshots.move(folder)
            for segment in self.segments:
                segment.move(folder, segment.suffix)
            for _, segment in self.doomed:
                segment.move(folder, DELETED)
