"""The records of a sibling: a note for everything that happens to the delayed records of its partition.

A note is a record batch of its own, so that one can be read without its neighbours. Its first header is
`x-schedule-note` (a kind, a due time and a producer id, 17 bytes; if a record waits, then also "=" and the topic that
it is delivered to, nothing if that is its own: its producer had the right to write there when the record was accepted,
and later changes of `delivery.delay.target` do not redirect it):

| kind | record | when |
|---|---|---|
| WAITS | the record as its producer sent it | a record was accepted |
| CANCELS | the same | a record that cancels others was accepted |
| DELIVERED | offset, due time and size of each record | they were delivered |
| COMMITS, ABORTS | nothing | the transaction of that producer ended |
| RECURS | the record as its producer sent it | as WAITS; or it was delivered and waits again |
| SENDS | offset, due time and size of each record | they are sent to another topic (`target`) |
| SEEN | nothing | everything up to here is noted: a start need not search it |

The offset of a note is that of what it is about in the partition: of the hole of a delayed record, of the first
delivered record, of the marker.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder, encode_count, encode_headers
from ixion.language.records.record import Record
from ixion.language.records.recurrence import every_ms_of, next_due
from ixion.language.records.schedule_headers import CANCEL, CRON, EVERY, ID, UNTIL, ZONE, number_of, time_of
from ixion.language.records.split import headers_without

HEADER: Final = "x-schedule-note"
FACTS: Final = Struct(">bqq")
PREVIOUS: Final = "x-schedule-previous"
DELIVERED: Final = Struct(">qqi")
SEQUENCE: Final = Struct(">i")
NO_PRODUCER: Final = -1
BINDS: Final = b"="


class Kind(IntEnum):
    WAITS = 1
    CANCELS = 2
    DELIVERED = 3
    COMMITS = 4
    ABORTS = 5
    SEEN = 6
    RECURS = 7
    SENDS = 8


WAITING: Final = (Kind.WAITS, Kind.RECURS)


Fact = tuple[int, int, int]  # offset, due time and size of a record; the size below zero if it has a schedule id


class Sending(NamedTuple):
    """Records that are sent to another topic, by an idempotent producer."""

    topic: str
    producer_id: int
    sequence: int  # of the first one
    target_end: int  # end offset of that topic after the delivery before
    facts: tuple[Fact, ...]


class Note:
    """A note that was read. `producer_id` is that of the transaction in which it was written, -1 if in none.

    `target` is the topic that the record is delivered to; empty: its own; None: the note is older than 0.2, and the
    setting of its topic decides.
    """

    __slots__ = ("due_ms", "kind", "offset", "producer_id", "record", "size", "target")

    def __init__(
        self, kind: int, due_ms: int, producer_id: int, record: Record, size: int, target: str | None = None
    ) -> None:
        self.kind: Final = kind
        self.due_ms: Final = due_ms
        self.producer_id: Final = producer_id
        self.record: Final = record
        self.offset: Final = int(record.offset)
        self.size: Final = size
        self.target: Final = target

    def header(self, name: bytes) -> bytes:
        """A header of the record as it was sent; empty if there is none of that name."""
        for each, value in self.record.headers:
            if each.lower().encode() == name:
                return value or b""
        return b""

    @property
    def previous(self) -> tuple[int, int, int] | None:
        """Offset, due time and size of the note that this one continues, if its record recurs."""
        if self.kind != Kind.RECURS or self.record.header_count < 2:
            return None
        name, facts = self.record.headers[1]
        if name != PREVIOUS or facts is None:
            return None
        offset, due_ms, size = DELIVERED.unpack(facts)
        return offset, due_ms, size

    def next_due(self, now_ms: int) -> int:
        """When a recurring record is due again; -1 if it does not recur, or never again."""
        if self.kind != Kind.RECURS:
            return -1
        every, until = self.header(EVERY), self.header(UNTIL)
        until_ms = max(number_of(until), time_of(until)) if until else -1
        every_ms = every_ms_of(every) if every else 0
        return next_due(every_ms, self.header(CRON), self.header(ZONE), until_ms, self.due_ms, now_ms)

    @property
    def sending(self) -> Sending:
        """The content of a note of kind SENDS."""
        key, value = self.record.key or b"", self.record.value or b""
        (sequence,) = SEQUENCE.unpack_from(key)
        facts = tuple([(offset, due_ms, size) for offset, due_ms, size in DELIVERED.iter_unpack(value)])
        return Sending(key[SEQUENCE.size :].decode(), self.producer_id, sequence, self.due_ms, facts)

    @property
    def fact(self) -> Fact:
        """Offset, due time and size, as notes about deliveries have them."""
        return self.offset, self.due_ms, -self.size if self.schedule_id else self.size

    @property
    def schedule_id(self) -> bytes:
        return self.header(ID)

    @property
    def cancel(self) -> bytes:
        return self.header(CANCEL)


def facts_of(kind: Kind, due_ms: int, producer_id: int, target: str | None) -> bytes:
    facts = FACTS.pack(kind, due_ms, producer_id)
    return facts if target is None else facts + BINDS + target.encode()


def write_note(
    kind: Kind,
    offset: int,
    leader_epoch: int,
    *,
    due_ms: int = -1,
    producer_id: int = -1,
    record: Record | None = None,
    target: str | None = None,
) -> bytes:
    """Encode a note about an accepted record, or about a marker."""
    builder = BatchBuilder(base_offset=offset, leader_epoch=leader_epoch)
    facts: list[tuple[str, bytes | None]] = [(HEADER, facts_of(kind, due_ms, producer_id, target))]
    if record is None:
        builder.append_at(offset, None, None, facts, -1)
    else:
        first = encode_headers(facts)[1:]  # without the count, which is one byte
        headers = encode_count(record.header_count + 1) + first + record.stored_headers()
        builder.append_encoded(offset, record.key, record.value, headers, record.timestamp)
    return builder.build()


def write_sends(offset: int, leader_epoch: int, sending: Sending) -> bytes:
    builder = BatchBuilder(base_offset=offset, leader_epoch=leader_epoch)
    facts: list[tuple[str, bytes | None]] = [(HEADER, FACTS.pack(Kind.SENDS, sending.target_end, sending.producer_id))]
    key = SEQUENCE.pack(sending.sequence) + sending.topic.encode()
    builder.append_at(offset, key, b"".join([DELIVERED.pack(*each) for each in sending.facts]), facts, -1)
    return builder.build()


def write_delivered(offset: int, leader_epoch: int, delivered: Sequence[Fact], target_end: int = -1) -> bytes:
    """Encode a note that covers the offsets under which the records were delivered.

    `target_end` is the end offset of the target, if they were delivered to another topic.
    """
    builder = BatchBuilder(base_offset=offset, leader_epoch=leader_epoch)
    facts: list[tuple[str, bytes | None]] = [(HEADER, FACTS.pack(Kind.DELIVERED, target_end, NO_PRODUCER))]
    builder.append_at(offset, None, b"".join(DELIVERED.pack(*each) for each in delivered), facts, -1)
    builder.last_offset = offset + max(len(delivered), 1) - 1
    return builder.build()


def write_again(offset: int, leader_epoch: int, note: Note, due_ms: int) -> bytes:
    """Encode that the record of `note` was delivered at `offset`, and is due again."""
    builder = BatchBuilder(base_offset=offset, leader_epoch=leader_epoch)
    first: list[tuple[str, bytes | None]] = [
        (HEADER, facts_of(Kind.RECURS, due_ms, NO_PRODUCER, note.target)),
        (PREVIOUS, DELIVERED.pack(note.offset, note.due_ms, note.size)),
    ]
    count, kept = headers_without(note.record, (HEADER.encode(), PREVIOUS.encode()))
    headers = encode_count(count + len(first)) + encode_headers(first)[1:] + kept
    builder.append_encoded(offset, note.record.key, note.record.value, headers, note.record.timestamp)
    return builder.build()


def write_outcome(
    offset: int, leader_epoch: int, notes: Sequence[Note | None], again_ms: list[int]
) -> tuple[bytes, dict[int, int]]:
    """Encode the notes about records that were delivered from `offset` on; those with a time in `again_ms` are due
    again.

    None stands for a record that needs no note. Also returns the size of each note of a recurring record, by its
    offset.
    """
    made: list[bytes] = []
    sizes: dict[int, int] = {}
    run: list[Fact] = []
    for place, (note, due_ms) in enumerate(zip(notes, again_ms, strict=True)):
        if due_ms < 0 and note is not None:
            run.append(note.fact)
            continue
        if run:
            made.append(write_delivered(offset + place - len(run), leader_epoch, run))
            run = []
        if note is None:
            continue
        made.append(write_again(offset + place, leader_epoch, note, due_ms))
        sizes[offset + place] = len(made[-1])
    if run:
        made.append(write_delivered(offset + len(notes) - len(run), leader_epoch, run))
    return b"".join(made), sizes


def read_note(view: BatchView) -> Note:
    for record in view.records():
        name, facts = record.headers[0]
        if name == HEADER and facts is not None:
            kind, due_ms, producer_id = FACTS.unpack_from(facts)
            target = facts[FACTS.size + 1 :].decode() if len(facts) > FACTS.size else None
            return Note(kind, due_ms, producer_id, record, int(view.size_in_bytes), target)
    raise ValueError(f"no note at offset {view.base_offset}")
