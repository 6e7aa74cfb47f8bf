"""What is known of the delayed records of one partition, brought up to date note by note.

A start applies the notes of the sibling one after the other; afterwards each is applied when it is written. Both ways
are the same functions, so that a restart knows what the running broker knew.

Notes of an open transaction are kept aside. They are applied when it commits, in their order, as if they had been
written then: a record replaces another, or cancels one, no sooner than its transaction counts.
"""

from __future__ import annotations

from ixion.delay.ids import ScheduleIds
from ixion.delay.journal import Journal
from ixion.delay.note import DELIVERED, NO_PRODUCER, WAITING, Kind, Note, Sending
from ixion.delay.pages import Pages
from ixion.delay.pending import Pending
from ixion.records.schedule_headers import ALL

# Of a note in an open transaction: kind, offset, due time, id or what to cancel, size.
Held = tuple[int, int, int, bytes, int]


class State:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.pending = Pending(Pages(journal.log.folder))
        self.ids = ScheduleIds()
        self.bytes = 0  # of the notes of all that waits
        self.open: dict[int, list[Held]] = {}  # by producer id
        self.held = 0  # records in open transactions
        self.held_bytes = 0
        self.cancelled = 0
        self.superseded = 0
        self.aborted = 0
        # Of a schedule topic: what is being sent to its target, and that and where it ended after the last delivery.
        self.sending: Sending | None = None
        self.target: tuple[str, int] = ("", -1)
        self.snapshot_end = 0  # the notes before it are in the newest snapshot

    @property
    def count(self) -> int:
        """Records that wait, those of open transactions and those under way to another topic included."""
        under_way = 0 if self.sending is None else len(self.sending.facts)
        return self.pending.count + self.held + under_way

    @property
    def size(self) -> int:
        return self.bytes + self.held_bytes

    def apply(self, note: Note) -> None:
        """Of a start."""
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

    def accept(self, kind: int, offset: int, due_ms: int, name: bytes, size: int, producer_id: int) -> None:
        """`name`: the schedule id of a record that waits, or what another one cancels."""
        if producer_id != NO_PRODUCER:
            self.open.setdefault(producer_id, []).append((kind, offset, due_ms, name, size))
            self.held += 1
            self.held_bytes += size
        elif kind == Kind.CANCELS:
            self.cancel(name)
        else:
            self._wait(offset, due_ms, name, size)

    def _wait(self, offset: int, due_ms: int, schedule_id: bytes, size: int) -> None:
        replaced = self.ids.get(schedule_id) if schedule_id else -1
        if schedule_id:
            self.ids.put(schedule_id, offset)
        self.pending.add(due_ms, offset)
        self.bytes += size
        if replaced >= 0 and self._drop_at(replaced, schedule_id):  # last: it reads, which may fail
            self.superseded += 1

    def cancel(self, name: bytes) -> None:
        if name == ALL:
            self.cancelled += self.pending.count
            self.pending, self.ids, self.bytes = Pending(Pages(self.journal.log.folder)), ScheduleIds(), 0
        elif name.startswith(b"@"):
            note = self.journal.find(int(name[1:]) if name[1:].isdigit() else int.from_bytes(name[1:], "big"))
            if note is not None and note.kind in WAITING:
                self.cancelled += self._drop(note)
        else:
            self.cancelled += self._drop_id(name)

    def _drop_id(self, schedule_id: bytes) -> bool:
        offset = self.ids.get(schedule_id)
        return offset >= 0 and self._drop_at(offset, schedule_id)

    def _drop_at(self, offset: int, schedule_id: bytes) -> bool:
        note = self.journal.find(offset)
        return note is not None and note.schedule_id == schedule_id and self._drop(note)

    def _drop(self, note: Note) -> bool:
        if not self.pending.remove(note.due_ms, note.offset):
            return False
        self.bytes -= note.size
        self.forget_id(note)
        return True

    def take_back(self) -> None:
        """What was being sent to another topic waits again."""
        sending, self.sending = self.sending, None
        if sending is not None:
            for offset, due_ms, _ in sending.facts:
                self.pending.add(due_ms, offset)

    def forget_id(self, note: Note) -> None:
        """The record of a note waits no more."""
        schedule_id = note.schedule_id
        if schedule_id:
            self.ids.remove(schedule_id, note.offset)

    def end_transaction(self, producer_id: int, commits: bool) -> None:
        held = self.open.pop(producer_id, [])
        for kind, offset, due_ms, name, size in held:
            self.held -= 1
            self.held_bytes -= size
            if commits:
                self.accept(kind, offset, due_ms, name, size, NO_PRODUCER)
            else:
                self.aborted += 1

    def first_offset(self) -> int:
        """The first note that is still needed; -1 if none is."""
        firsts = [held[0][1] for held in self.open.values() if held]
        if self.sending is not None:
            firsts += [offset for offset, _, _ in self.sending.facts]
        waiting = self.pending.first_offset()
        return min([*firsts, waiting] if waiting >= 0 else firsts, default=-1)
