"""The sibling of a partition: an ordinary log with its notes, under the offsets of the partition.

**One rule makes a crash harmless: a note is written first, and then, under the same offset, what it is about.** If the
partition ends before the sibling, the partition lacks what the last notes are about, and they are truncated (`align`).

    the process is killed                       the next start finds
    before the note of a record                 nothing; its producer retries
    after it, before the hole in the partition  the partition ends before the note: truncated; its producer retries
    after the hole                              the record waits
    after the note that records were delivered  the partition ends before the note: truncated; they wait again
    after the records                           they were delivered

If the power fails, the end of either log may be lost. If the sibling ends first, the partition is read from there on,
to find records that were delivered and transactions that ended (`loading`).
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final, TypeVar

from ixion.broker.log.log import Log
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound, limit_of
from ixion.broker.schedules.note import Kind, Note, read_note, write_note
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_complete_batches

T = TypeVar("T")

NEAR: Final = 16 << 10  # bytes read to find one note; the following notes are often wanted next
PIECE: Final = 1 << 20


class Journal:
    def __init__(self, log: Log, rolled: Callable[[], None]) -> None:
        """`rolled` is called when a segment was sealed and should be flushed."""
        self.log = log  # a move to another directory replaces it, on another thread
        self._rolled = rolled
        self._writing = Lock()
        self._closed = False

    def close(self) -> None:
        """Write no more: another broker leads the partition, and a fetcher writes to the sibling."""
        with self._writing:
            self._closed = True

    def write(self, notes: bytes) -> None:
        with self._writing:
            if self._closed:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.log.name} is written by another leader")
            info = self._insist(lambda log: log.append_as_follower(notes))
        log = self.log
        log.raise_high_watermark(log.end_offset)
        if info.rolled:
            self._rolled()

    def note_seen(self, offset: int, leader_epoch: int) -> None:
        """Write that everything in the partition up to `offset` is noted, so that a start need not search it."""
        self.write(write_note(Kind.SEEN, offset, leader_epoch))

    def align(self, end_offset: int) -> bool:
        """Truncate notes about what the partition does not have. True if there were any; blocks then."""
        with self._writing:
            if self.log.end_offset <= end_offset or self._closed:
                return False
            self._insist(lambda log: log.truncate_to(end_offset))
            return True

    def _insist(self, work: Callable[[Log], T]) -> T:
        """Do something with the log; again if it moved to another directory meanwhile: then nothing was done."""
        log = self.log
        try:
            return work(log)
        except KafkaError:
            if self.log is log:
                raise
            return work(self.log)

    def notes(self, offset: int) -> Iterator[Note]:
        """Every note from `offset` on."""
        for view in batches(self.log, max(offset, self.log.log_start), PIECE, Bound.END):
            yield read_note(view)

    def find(self, offset: int) -> Note | None:
        """The note at an offset."""
        for note in self.find_all([offset]):
            return note
        return None

    def find_all(self, offsets: list[int]) -> list[Note]:
        """The notes at these ascending offsets. Neighbours are read together."""
        return self._insist(lambda log: find_all(log, offsets))

    def forget_below(self, offset: int) -> None:
        """Delete whole segments of notes below `offset`, which are no longer needed."""
        if self.log.log_start < offset <= self.log.high_watermark:
            try:
                self.log.raise_log_start(offset)
            except KafkaError:
                return  # the next call tries again


def batches(log: Log, offset: int, piece: int, bound: Bound) -> Iterator[BatchView]:
    """Every batch from `offset` on."""
    while offset < limit_of(log, bound):
        data = read(log, offset, piece, bound).records
        if not data:
            return
        for view in iter_complete_batches(data):
            if view.last_offset >= offset:
                yield view
                offset = int(view.last_offset) + 1


def find_all(log: Log, offsets: list[int]) -> list[Note]:
    found: list[Note] = []
    views: Iterator[BatchView] = iter(())
    view: BatchView | None = None
    for offset in offsets:
        if not log.log_start <= offset < log.end_offset:
            continue
        while view is not None and view.base_offset < offset:
            view = next(views, None)
        if view is None:
            views = iter_complete_batches(read(log, offset, NEAR, Bound.END).records)
            view = next(views, None)
        if view is not None and view.base_offset == offset:
            found.append(read_note(view))
    return found
