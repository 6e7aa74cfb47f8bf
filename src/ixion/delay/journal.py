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

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final

from ixion.delay.note import Kind, Note, read_note, write_note
from ixion.log.log import Log
from ixion.log.reader import read
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.batch import BatchView
from ixion.records.batches import iter_complete_batches

NEAR: Final = 16 << 10  # bytes read to find one note; the following notes are often wanted next
PIECE: Final = 1 << 20


class Journal:
    def __init__(self, log: Log, rolled: Callable[[], None]) -> None:
        """`rolled` is called when a segment was sealed and should be flushed."""
        self.log: Final = log
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
            info = self.log.append_as_follower(notes)
        self.log.raise_high_watermark(self.log.end_offset)
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
            self.log.truncate_to(end_offset)
            return True

    def notes(self, offset: int) -> Iterator[Note]:
        """Every note from `offset` on."""
        for view in batches(self.log, max(offset, self.log.log_start), PIECE):
            yield read_note(view)

    def find(self, offset: int) -> Note | None:
        """The note at an offset."""
        for note in self.find_all([offset]):
            return note
        return None

    def find_all(self, offsets: list[int]) -> list[Note]:
        """The notes at these ascending offsets. Neighbours are read together."""
        log = self.log
        found = []
        views: Iterator[BatchView] = iter(())
        view: BatchView | None = None
        for offset in offsets:
            if not log.log_start <= offset < log.end_offset:
                continue
            while view is not None and view.base_offset < offset:
                view = next(views, None)
            if view is None:
                views = iter_complete_batches(read(log, offset, NEAR).records)
                view = next(views, None)
            if view is not None and view.base_offset == offset:
                found.append(read_note(view))
        return found

    def forget_below(self, offset: int) -> None:
        """Delete whole segments of notes below `offset`, which are no longer needed."""
        if self.log.log_start < offset <= self.log.high_watermark:
            try:
                self.log.raise_log_start(offset)
            except KafkaError:
                return  # the next call tries again


def batches(log: Log, offset: int, piece: int) -> Iterator[BatchView]:
    """Every batch from `offset` on."""
    while offset < log.end_offset:
        data = read(log, offset, piece).records
        if not data:
            return
        for view in iter_complete_batches(data):
            if view.last_offset >= offset:
                yield view
                offset = int(view.last_offset) + 1
