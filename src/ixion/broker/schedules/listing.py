"""Lists the waiting records of a partition from the notes of its sibling, for `ixion schedule list`.

It follows the same rules as `state`, but keeps the records and has no limits on memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ixion.broker.schedules.note import DELIVERED, NO_PRODUCER, WAITING, Kind, Note
from ixion.language.records.schedule_headers import ALL


class Waiting(NamedTuple):
    offset: int
    due_ms: int
    schedule_id: bytes
    key: bytes | None
    size: int
    committed: bool  # False: its transaction is open


class Listing:
    def __init__(self) -> None:
        self.waiting: dict[int, Waiting] = {}
        self.delivered: set[int] = set()  # offsets under which records have waited
        self._ids: dict[bytes, int] = {}
        self._open: dict[int, list[tuple[int, Waiting, bytes]]] = {}

    def apply(self, note: Note) -> None:
        kind = note.kind
        if kind in (*WAITING, Kind.CANCELS):
            previous = note.previous
            if previous is not None:
                self.waiting.pop(previous[0], None)
                self.delivered.add(previous[0])
            record = note.record
            is_open = note.producer_id != NO_PRODUCER
            found = Waiting(note.offset, note.due_ms, note.schedule_id, record.key, note.size, not is_open)
            if is_open:
                self._open.setdefault(note.producer_id, []).append((kind, found, note.cancel))
            else:
                self._count(kind, found, note.cancel)
        elif kind == Kind.DELIVERED:
            for offset, _, _ in DELIVERED.iter_unpack(note.record.value or b""):
                self.waiting.pop(offset, None)
                self.delivered.add(offset)
        elif kind in (Kind.COMMITS, Kind.ABORTS):
            for each, found, cancel in self._open.pop(note.producer_id, []):
                if kind == Kind.COMMITS:
                    self._count(each, found._replace(committed=True), cancel)

    def _count(self, kind: int, found: Waiting, cancel: bytes) -> None:
        if kind in WAITING:
            if found.schedule_id:
                self.waiting.pop(self._ids.get(found.schedule_id, -1), None)
                self._ids[found.schedule_id] = found.offset
            self.waiting[found.offset] = found
        elif cancel == ALL:
            self.waiting.clear()
        elif cancel.startswith(b"@"):
            self.waiting.pop(int(cancel[1:]) if cancel[1:].isdigit() else int.from_bytes(cancel[1:], "big"), None)
        else:
            self.waiting.pop(self._ids.get(cancel, -1), None)

    def rows(self) -> list[Waiting]:
        """The waiting records in the order of their delivery, with those of open transactions."""
        held = [found for each in self._open.values() for kind, found, _ in each if kind in WAITING]
        return sorted([*self.waiting.values(), *held], key=lambda row: (row.due_ms, row.offset))


def listed(notes: Iterable[Note]) -> Listing:
    listing = Listing()
    for note in notes:
        listing.apply(note)
    return listing
