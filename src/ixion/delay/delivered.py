"""Builds a delivered record, and applies a delivery to the state.

It has the headers of its producer without those about delivery, and three of the broker: `x-scheduled-for` (the due
time), `x-schedule-offset` (its handle) and `x-schedule-created` (the timestamp of its producer). Its timestamp is the
due time: with the producer's, retention would at once delete a record that is delivered a month later.
"""

from __future__ import annotations

from typing import Final

from ixion.delay.note import NO_PRODUCER, Kind, Note
from ixion.delay.state import State
from ixion.records.builder import BatchBuilder
from ixion.records.schedule_headers import CREATED, FOR, NEXT, OFFSET, TOPIC
from ixion.records.split import kept_headers

AT_ONCE: Final = 256  # records in a batch that is sent to another topic
STEP: Final = 16  # records delivered per step, some 200 µs
AT_ONCE_BYTES: Final = 1 << 20


def settle(state: State, note: Note, offset: int, next_ms: int, size: int) -> None:
    """Apply that the record of a note was delivered at `offset`. If it recurs, its new note has `size` bytes."""
    state.bytes -= note.size
    state.forget_id(note)
    if next_ms >= 0:
        state.accept(Kind.RECURS, offset, next_ms, note.schedule_id, size, NO_PRODUCER)


def add(builder: BatchBuilder, note: Note, next_ms: int, topic: str = "") -> bool:
    """Add the record of a note to a batch. `topic` is where it waited, if it goes to another topic."""
    record = note.record
    headers: list[tuple[str, bytes | None]] = [
        (FOR.decode(), b"%d" % note.due_ms),
        (OFFSET.decode(), b"%d" % note.offset),
        (CREATED.decode(), b"%d" % record.timestamp),
    ]
    if next_ms >= 0:
        headers.append((NEXT.decode(), b"%d" % next_ms))
    if topic:
        headers.append((TOPIC.decode(), topic.encode()))
    return builder.append_encoded(
        builder.last_offset + 1, record.key, record.value, kept_headers(record, headers), note.due_ms
    )
