"""Builds a delivered record, and applies a delivery to the state.

It has the headers of its producer without those about delivery, and three of the broker: `x-scheduled-for` (the due
time), `x-schedule-offset` (its handle) and `x-schedule-created` (the timestamp of its producer). Its timestamp is the
time of the delivery, from which retention counts. With the producer's timestamp, retention would at once delete a
record that is delivered a month later; with the due time, one that became due while the broker was down.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion.broker.schedules.note import NO_PRODUCER, Kind, Note
from ixion.broker.schedules.pending import Due
from ixion.broker.schedules.state import State
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.schedule_headers import CREATED, FOR, NEXT, OFFSET, TOPIC
from ixion.language.records.split import kept_headers

AT_ONCE: Final = 256  # records in a batch that is sent to another topic
AT_ONCE_BYTES: Final = 1 << 20
FOR_NAME: Final = FOR.decode()
OFFSET_NAME: Final = OFFSET.decode()
CREATED_NAME: Final = CREATED.decode()


class Gathered:
    """The records of a batch: the notes of those that are in it, and when each is due again, or -1."""

    __slots__ = ("again_ms", "fault", "notes", "stuck")

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.again_ms: list[int] = []
        self.stuck = 0  # recurring records whose next time cannot be found,
        self.fault: Exception | None = None  # and why


def gather(builder: BatchBuilder, ready: list[Due], notes: dict[int, Note], now_ms: int) -> Gathered:
    """Add the records of these offsets to a batch, in their order, as many as fit."""
    made = Gathered()
    for _, offset in ready:
        note = notes.get(offset)
        if note is None:
            continue
        try:
            next_ms = note.next_due(now_ms)
        except Exception as error:  # cronsim is not installed, or a time zone is missing
            made.fault = error
            made.stuck += 1
            continue
        if not add(builder, note, next_ms, now_ms):
            break
        made.notes.append(note)
        made.again_ms.append(next_ms)
    return made


def settle_all(state: State, gathered: Gathered, first: int, sizes: dict[int, int]) -> None:
    """They were delivered from the offset `first` on; `sizes` has the notes that say that one is due again."""
    offset = first
    for note, next_ms in zip(gathered.notes, gathered.again_ms, strict=True):
        settle(state, note, offset, next_ms, sizes.get(offset, 0))
        offset += 1


def settle(state: State, note: Note, offset: int, next_ms: int, size: int) -> None:
    """Apply that the record of a note was delivered at `offset`. If it recurs, its new note has `size` bytes."""
    state.bytes -= note.size
    state.forget_id(note)
    if next_ms >= 0:
        state.accept(Kind.RECURS, offset, next_ms, note.schedule_id, size, NO_PRODUCER)


def add(builder: BatchBuilder, note: Note, next_ms: int, now_ms: int, topic: str = "") -> bool:
    """Add the record of a note to a batch that is delivered now. `topic` is where it waited, if it goes to another."""
    record = note.record
    headers: list[tuple[str, bytes | None]] = [
        (FOR_NAME, b"%d" % note.due_ms),
        (OFFSET_NAME, b"%d" % note.offset),
        (CREATED_NAME, b"%d" % record.timestamp),
    ]
    if next_ms >= 0:
        headers.append((NEXT.decode(), b"%d" % next_ms))
    if topic:
        headers.append((TOPIC.decode(), topic.encode()))
    return builder.append_encoded(
        builder.last_offset + 1, record.key, record.value, kept_headers(record, headers), now_ms
    )
