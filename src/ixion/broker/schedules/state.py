"""The state of the delayed records of one partition, updated note by note.

A start applies the notes of the sibling one after the other; a running broker applies each when it is written. Both use
the same functions, so the state is the same after a restart.

Notes of an open transaction are held. When it commits they are applied in their order, as if they had been written
then: a record replaces or cancels another only once its transaction is committed.

A running broker puts the notes of accepted records into a backlog, and applies it in steps: replacing or cancelling a
record reads its note, and one batch, or the commit of one transaction, may need many thousand reads. Nothing is
delivered before the backlog is empty, so no record is delivered that an earlier note cancels.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections import deque
from typing import Final

from ixion.broker.schedules.ids import ScheduleIds
from ixion.broker.schedules.journal import Journal
from ixion.broker.schedules.note import DELIVERED, NO_PRODUCER, WAITING, Kind, Note, Sending
from ixion.broker.schedules.pages import Pages
from ixion.broker.schedules.pending import Pending
from ixion.language.records.schedule_headers import ALL

STEP: Final = 64  # notes of the backlog applied per step, a millisecond or two

# A note that is not applied yet: kind, offset, due time, id or what to cancel, size.
Held = tuple[int, int, int, bytes, int]


class State:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.pending = Pending(Pages(journal.log.folder))
        self.ids = ScheduleIds()
        self.bytes = 0  # of the notes of all waiting records
        self.open: dict[int, list[Held]] = {}  # by producer id
        self.backlog: deque[Held] = deque()
        self.held = 0  # notes in open transactions, and in the backlog
        self.held_bytes = 0
        self.cancelled = 0
        self.superseded = 0
        self.aborted = 0
        # For a schedule topic: the records that are being sent, the target, and its end after the last delivery.
        self.sending: Sending | None = None
        self.target: tuple[str, int] = ("", -1)
        self.snapshot_end = 0  # the newest snapshot covers the notes before it

    @property
    def count(self) -> int:
        """Waiting records, with those of open transactions and those that are being sent."""
        under_way = 0 if self.sending is None else len(self.sending.facts)
        return self.pending.count + self.held + under_way

    @property
    def size(self) -> int:
        return self.bytes + self.held_bytes

    def apply(self, note: Note) -> None:
        """Apply a note at a start."""
        kind = note.kind
        if kind in WAITING:
            previous = note.previous
            if previous is not None:
                offset, due_ms, size = previous
                if self.pending.remove(due_ms, offset):
                    self.bytes -= size
                    self.ids.remove(note.schedule_id, offset)
            self.accept(kind, note.offset, note.due_ms, note.schedule_id, note.size, note.producer_id)
        elif kind == Kind.CANCELS:
            self.accept(kind, note.offset, -1, note.cancel, note.size, note.producer_id)
        elif kind == Kind.SENDS:
            self.take_back()
            sending = note.sending
            for offset, due_ms, _ in sending.facts:
                self.pending.remove(due_ms, offset)
            self.sending = sending if sending.facts else None
        elif kind == Kind.DELIVERED:
            if self.sending is not None:
                self.target = (self.sending.topic, note.due_ms)
                self.take_back()
            for offset, due_ms, size in DELIVERED.iter_unpack(note.record.value or b""):
                if self.pending.remove(due_ms, offset):
                    self.bytes -= abs(size)
                    delivered = self.journal.find(offset) if size < 0 else None
                    if delivered is not None:
                        self.forget_id(delivered)
        elif kind in (Kind.COMMITS, Kind.ABORTS):
            self.end_transaction(note.producer_id, kind == Kind.COMMITS)
            while self.advance_backlog():
                pass

    def queue(self, kind: int, offset: int, due_ms: int, name: bytes, size: int, producer_id: int) -> None:
        """As `accept`, but applied later."""
        self.held += 1
        self.held_bytes += size
        if producer_id != NO_PRODUCER:
            self.open.setdefault(producer_id, []).append((kind, offset, due_ms, name, size))
        else:
            self.backlog.append((kind, offset, due_ms, name, size))

    def advance_backlog(self) -> bool:
        """Apply some notes of the backlog. False if it is empty then."""
        backlog = self.backlog
        for _ in range(STEP):
            if not backlog:
                return False
            kind, offset, due_ms, name, size = backlog[0]
            self.accept(kind, offset, due_ms, name, size, NO_PRODUCER)
            backlog.popleft()  # last: a step that fails is retried
            self.held -= 1
            self.held_bytes -= size
        return len(backlog) > 0

    def accept(self, kind: int, offset: int, due_ms: int, name: bytes, size: int, producer_id: int) -> None:
        """`name` is the schedule id of a waiting record, or what a cancelling record names."""
        if producer_id != NO_PRODUCER:
            self.queue(kind, offset, due_ms, name, size, producer_id)
        elif kind == Kind.CANCELS:
            self.cancel(name)
        else:
            self._wait(offset, due_ms, name, size)

    def _wait(self, offset: int, due_ms: int, schedule_id: bytes, size: int) -> None:
        if schedule_id:
            self.superseded += self._drop_id(schedule_id)  # first, because reading may fail
            self.ids.put(schedule_id, offset)
        self.pending.add(due_ms, offset)
        self.bytes += size

    def cancel(self, name: bytes) -> None:
        if name == ALL:
            self.cancelled += self.pending.count
            self.pending, self.ids = Pending(Pages(self.journal.log.folder)), ScheduleIds()
            # A record that is being sent cannot be cancelled any more.
            self.bytes = 0 if self.sending is None else sum([abs(size) for _, _, size in self.sending.facts])
        elif name.startswith(b"@"):
            note = self.journal.find(int(name[1:]) if name[1:].isdigit() else int.from_bytes(name[1:], "big"))
            if note is not None and note.kind in WAITING:
                self.cancelled += self._drop(note)
        else:
            self.cancelled += self._drop_id(name)

    def _drop_id(self, schedule_id: bytes) -> bool:
        offset = self.ids.get(schedule_id)
        note = self.journal.find(offset) if offset >= 0 else None
        return note is not None and note.schedule_id == schedule_id and self._drop(note)

    def _drop(self, note: Note) -> bool:
        if not self.pending.remove(note.due_ms, note.offset):
            return False
        self.bytes -= note.size
        self.forget_id(note)
        return True

    def take_back(self) -> None:
        """Let the records that were being sent wait again."""
        sending, self.sending = self.sending, None
        if sending is not None:
            for offset, due_ms, _ in sending.facts:
                self.pending.add(due_ms, offset)

    def move_pages(self) -> None:
        """The sibling has moved to another directory: whatever belongs to it does, too."""
        if self.pending.pages is not None:
            self.pending.pages.move(self.journal.log.folder)
        self.snapshot_end = 0  # there is none in the new folder

    def forget_id(self, note: Note) -> None:
        """Forget the schedule id of a record that no longer waits."""
        schedule_id = note.schedule_id
        if schedule_id:
            self.ids.remove(schedule_id, note.offset)

    def end_transaction(self, producer_id: int, commits: bool) -> None:
        """Move the notes of a committed transaction to the backlog; drop those of an aborted one."""
        held = self.open.pop(producer_id, [])
        if commits:
            self.backlog.extend(held)
        else:
            self.held -= len(held)
            self.held_bytes -= sum([each[4] for each in held])
            self.aborted += len(held)

    def first_offset(self) -> int:
        """The first note that is still needed; -1 if none is."""
        firsts = [held[0][1] for held in self.open.values() if held] + [each[1] for each in self.backlog]
        if self.sending is not None:
            firsts += [offset for offset, _, _ in self.sending.facts]
        waiting = self.pending.first_offset()
        return min([*firsts, waiting] if waiting >= 0 else firsts, default=-1)
