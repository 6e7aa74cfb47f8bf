"""Opens a partition folder, in any state in which a crash may have left it.

1. Delete leftover `.deleted` and `.cleaned` files. A `.swap` file is the finished result of a compaction: it stays, and
   the segments it replaces are deleted. But a `.swap` file at or after a `.cleaned` file belongs to an incomplete set
   and is deleted too.
2. Set aside indexes that have no log file. Make a segment of each log file; recover one whose index is missing or fails
   a cheap check.
3. After an unclean stop, recover every segment from the recovery point on. At the first damage cut the log there, and
   set aside all later segments. So does a gap between two of these segments: a loss of power can leave an unsynced
   file short or empty although a later one exists. Compaction leaves gaps, too, so a compacted topic may have them, and
   so may any log up to the offset to which it was once compacted; and where indexes without their log file show that
   it was removed, what comes later stays.
4. If the log ends below its log start (files are missing), set aside its segments and continue at the log start.
5. Drop leader epochs beyond the end. If their checkpoint is lost or damaged, read them from the batches; recovery of
   every segment has done so already.
6. Load the latest valid producer snapshot, and replay the batches since.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from ixion.broker.log.config import NEVER, LogConfig
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.directory_state import DirectoryState
from ixion.broker.log.files import Files
from ixion.broker.log.log import Log
from ixion.broker.log.names import CLEANED, DELETED, INDEX, LOG, SNAPSHOT, SWAP, TIME_INDEX, TXN_INDEX, parse_file_name
from ixion.broker.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from ixion.broker.log.partition_metadata import read_topic_id
from ixion.broker.log.recovery import Damage, cut_damage, recover_segment
from ixion.broker.log.replay import rebuild_producers
from ixion.broker.log.rolling import start_segment
from ixion.broker.log.scan import Scan
from ixion.broker.log.segment import Segment

logger = logging.getLogger(__name__)

_KINDS = (LOG, INDEX, TIME_INDEX, TXN_INDEX)


def open_log(
    *,
    directory: DirectoryState,
    folder: str,
    topic: str,
    partition: int,
    config: LogConfig,
    files: Files,
    clock_ms: Callable[[], int],
    clean: bool = False,
    recovery_point: int = 0,
    log_start: int = 0,
    high_watermark: int = -1,
    compacted_to: int = 0,
) -> Log:
    """Opens a partition, and creates its folder if it is missing. The four offsets come from the checkpoints."""
    log = Log(
        directory=directory,
        folder=folder,
        topic=topic,
        partition=partition,
        config=config,
        files=files,
        clock_ms=clock_ms,
    )
    try:
        if not os.path.isdir(folder):
            files.make_dir(folder)
        sizes = _settle(log)
        log.topic_id = read_topic_id(files, os.path.join(folder, PARTITION_METADATA))
        epochs_lost = _load_epochs(log) or not log.epochs.entries()
        now_ms = clock_ms()
        replicated = high_watermark if high_watermark >= 0 else NEVER  # unknown: then search no markers above it
        _load_segments(log, sizes, now_ms, clean, recovery_point, log_start)
        removed = {base for base, kinds in sizes.items() if LOG not in kinds}
        from_start = len(log.segments.from_offset(recovery_point)) == len(log.segments)

        def has_lost(segment: Segment, later: list[Segment]) -> bool:
            return _offsets_are_missing(log, segment, later, log_start, compacted_to, removed)

        if not clean:
            recovered = _recover(log, recovery_point, log_start, replicated, has_lost)
        else:
            recovered = _ends_well(log) or _recover(
                log, log.segments.active.base_offset, log_start, replicated, has_lost
            )
        _set_offsets(log, clean and recovered, recovery_point, log_start, now_ms)
        if epochs_lost and (clean or not from_start):
            _reread_epochs(log)
        log.epochs.truncate_end(log.end_offset)
        log.epochs.truncate_start(log.log_start)
        log.snapshots.drop_strays([segment.base_offset for segment in log.segments])
        log.snapshots.drop_above(log.end_offset)
        log.high_watermark = min(max(high_watermark, log.log_start), log.end_offset)
        if not clean and log.producers.end_offset == log.end_offset:  # recovery has just read the last segment
            log.producers.expire(now_ms, config.producer_id_expiration_ms)
            log.producers.on_high_watermark(log.high_watermark)
        else:
            rebuild_producers(log, log.log_start, log.end_offset, replicated)
        for segment in log.segments:
            segment.close()
    except OSError as error:
        raise directory.fail(f"loading {topic}-{partition}", error) from error
    return log


def _settle(log: Log) -> dict[int, dict[str, int]]:
    """Removes files that an interrupted deletion or compaction left. Returns sizes by base offset and kind."""
    files, folder = log.files, log.folder
    found: dict[tuple[int, str], int] = {}
    others: list[str] = []
    for entry in files.list_dir(folder):
        parsed = parse_file_name(entry.name)
        if parsed is not None:
            found[parsed] = entry.stat().st_size
        elif entry.name.endswith(".tmp"):
            files.remove(entry.path)
        else:
            others.append(entry.name)
    log.aside.find(others)
    if any(suffix.endswith((DELETED, CLEANED, SWAP)) for _, suffix in found):
        _finish_swaps(files, folder, found)
    sizes: dict[int, dict[str, int]] = {}
    for (offset, suffix), size in found.items():
        if suffix == SNAPSHOT:
            log.snapshots.offsets.append(offset)
        elif suffix in _KINDS:
            sizes.setdefault(offset, {})[suffix] = size
    log.snapshots.offsets.sort()
    return sizes


def _finish_swaps(files: Files, folder: str, found: dict[tuple[int, str], int]) -> None:
    def path(offset: int, suffix: str) -> str:
        return os.path.join(folder, f"{offset:020d}{suffix}")

    def drop(offset: int, suffix: str) -> None:
        files.remove(path(offset, suffix))
        del found[offset, suffix]

    first_cleaned = min((offset for offset, suffix in found if suffix.endswith(CLEANED)), default=1 << 63)
    for offset, suffix in list(found):
        half_swapped = suffix.endswith(SWAP) and offset >= first_cleaned
        if suffix.endswith((DELETED, CLEANED)) or half_swapped:
            drop(offset, suffix)
    swapped = sorted(offset for offset, suffix in found if suffix == LOG + SWAP)
    for base in swapped:
        segment = Segment(files, folder, base, {LOG: found[base, LOG + SWAP]}, 0, SWAP)
        end = segment.next_offset()
        segment.close()
        for offset, suffix in list(found):
            if suffix in _KINDS and base <= offset < max(end, base + 1):
                drop(offset, suffix)
    for offset, suffix in list(found):
        if suffix.endswith(SWAP):
            plain = suffix.removesuffix(SWAP)
            files.rename(path(offset, suffix), path(offset, plain))
            found[offset, plain] = found.pop((offset, suffix))
    if swapped:
        # Sync before any truncation: if the old names came back after a truncation, the old segments would too.
        files.sync_dir(folder)


def _load_epochs(log: Log) -> bool:
    """True if the checkpoint is lost or damaged."""
    try:
        log.epochs.load()
    except CorruptFileError as error:
        logger.warning("reading the leader epochs from the log: %s", error)
        return True
    return False


def _load_segments(
    log: Log, sizes: dict[int, dict[str, int]], now_ms: int, clean: bool, recovery_point: int, log_start: int
) -> None:
    # Recovery begins with the segment that contains the recovery point, so that one and later ones need no check here.
    doubtful = max((base for base in sizes if base <= recovery_point), default=0)
    for base in sorted(sizes):
        kinds = sizes[base]
        if LOG not in kinds:
            for kind in kinds:
                log.aside.keep_file(os.path.join(log.folder, f"{base:020d}{kind}"), "it has no log file")
            continue
        segment = Segment(log.files, log.folder, base, kinds, now_ms)
        if (clean or base < doubtful) and not _is_sound(segment, kinds):
            damage = _recover_one(log, segment, log_start, NEVER)
            log.snapshots.take(log.producers)
            if damage is not None:
                cut_damage(segment, damage, log.aside)
            # The segment lies below the recovery point, so no flush will sync it.
            segment.handle.sync()
            segment.replace_indexes(True)
            for handle in segment.take_unsynced_indexes():
                handle.sync()
            log.files.sync_dir(log.folder)
        log.segments.add(segment)


def _is_sound(segment: Segment, kinds: dict[str, int]) -> bool:
    if segment.size and (INDEX not in kinds or TIME_INDEX not in kinds):
        logger.warning("%s has no index; recovery rebuilds it", segment.path(LOG))
        return False
    try:
        segment.check_indexes()
    except CorruptFileError as error:
        logger.warning("recovery rebuilds an index: %s", error)
        return False
    return True


def _recover_one(log: Log, segment: Segment, log_start: int, replicated: int) -> Damage | None:
    """Recovers a segment, starting with the producer state at its base offset."""
    rebuild_producers(log, log_start, segment.base_offset, replicated)
    return _read_batches(log, segment)


def _read_batches(log: Log, segment: Segment) -> Damage | None:
    return recover_segment(segment, log.producers, log.epochs, log.config.index_interval_bytes, log.clock_ms())


def _ends_well(log: Log) -> bool:
    """Whether the last segment of a log that was closed cleanly ends with a whole batch."""
    if len(log.segments):
        try:
            log.segments.active.next_offset()
        except CorruptFileError as error:
            logger.warning("the last segment is recovered: %s", error)
            return False
    return True


def _recover(
    log: Log,
    recovery_point: int,
    log_start: int,
    replicated: int,
    has_lost: Callable[[Segment, list[Segment]], bool],
) -> bool:
    """False if the log was cut. `has_lost`: whether records are missing between a segment and those behind it."""
    unflushed = list(log.segments.from_offset(recovery_point))
    log.new_names = True  # recovery makes index files; the next flush must sync their names
    for number, segment in enumerate(unflushed):
        log.snapshots.drop_above(segment.base_offset)
        if number == 0:
            damage = _recover_one(log, segment, log_start, replicated)
        else:
            log.producers.end_offset = segment.base_offset  # their state goes on from segment to segment
            damage = _read_batches(log, segment)
        later = unflushed[number + 1 :]
        missing = damage is None and has_lost(segment, later)
        if damage is not None or missing:
            # Cut the damage last: if this start is stopped halfway, the next one must find the damage again.
            _set_aside(log, later, "it comes after missing offsets" if missing else "it comes after the damage")
            if damage is not None:
                cut_damage(segment, damage, log.aside)
            segment.replace_indexes(False)
            _sync_cut(log, segment)
            return False
        segment.replace_indexes(False)
        if later:
            log.snapshots.take(log.producers)
    return True


def _offsets_are_missing(
    log: Log, segment: Segment, later: list[Segment], log_start: int, compacted_to: int, removed: set[int]
) -> bool:
    """Whether records were lost between a segment, which is whole, and the next one.

    A topic that is not compacted today may have been: up to `compacted_to` its segments are synced, and gaps are
    records that were superseded. `removed` are the base offsets of log files that are gone.
    """
    if not later or log.config.compact:
        return False
    end, begin = max(segment.next_offset(), log_start), later[0].base_offset
    if end >= begin or begin <= compacted_to or end in removed:
        return False
    logger.warning("%s has lost the offsets %d to %d; it is cut there", log.name, end, begin - 1)
    return True


def _sync_cut(log: Log, segment: Segment) -> None:
    """Syncs the cut: after a power failure, removed batches must not come back among new ones."""
    segment.handle.sync()
    log.files.sync_dir(log.folder)


def _set_aside(log: Log, segments: list[Segment], why: str) -> None:
    """Sets segments aside, the last one first: a start that is stopped halfway leaves no new gap."""
    for segment in reversed(segments):
        log.segments.remove(segment)
        segment.close()
        for kind in _KINDS:
            log.aside.keep_file(segment.path(kind), why)
    log.new_names = True


def _set_offsets(log: Log, trusted: bool, recovery_point: int, log_start: int, now_ms: int) -> None:
    had_segments = len(log.segments) > 0
    if had_segments and log.segments.active.next_offset() < log_start:
        logger.warning("%s ends before its log start %d; it continues there", log.name, log_start)
        _set_aside(log, list(log.segments), "it lies below the start of the log")
        log.epochs.clear()
        log.snapshots.drop_all()
    if not len(log.segments):
        start_segment(log, log_start, now_ms)
        if had_segments:
            _sync_cut(log, log.segments.active)
    log.end_offset = log.segments.active.next_offset()
    log.log_start = max(log_start, log.segments.first.base_offset)
    log.recovery_point = log.end_offset if trusted else min(recovery_point, log.end_offset)


def _reread_epochs(log: Log) -> None:
    log.epochs.clear()
    for segment in log.segments:
        scan = Scan(segment.handle, 0, segment.size)
        while scan.step():
            head = scan.head()
            if head.leader_epoch > log.epochs.latest:
                log.epochs.assign(int(head.leader_epoch), int(head.base_offset))
    log.epochs.write()
