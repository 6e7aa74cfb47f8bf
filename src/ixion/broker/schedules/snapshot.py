"""The waiting records of a partition as a file, so that a start need not read every note.

The file is derived data: without it, or if it is damaged, a start reads all notes. It is valid if the sibling still has
the note that was the last one when the file was made. If the sibling was truncated before that note, or another leader
has written another note there, the checksum or the epoch differs, and the file is ignored.

    magic, 8 bytes | size of the head, 4 bytes | head, JSON | chunks | ids | CRC-32C of all before, 4 bytes

`capture` copies everything that is in memory, on the loop: some 5 ms for a million records. A worker thread then copies
the pages, which stay unchanged meanwhile (`Pages.freeze`).
"""

from __future__ import annotations

import json
import logging
import os
import sys
from array import array
from typing import Final, NamedTuple, cast

from ixion.broker.log.view import Bound
from ixion.broker.schedules.ids import ScheduleIds
from ixion.broker.schedules.journal import PIECE, Journal, batches
from ixion.broker.schedules.note import Sending
from ixion.broker.schedules.pages import NO_PAGE, OFFSET_BYTES, Pages
from ixion.broker.schedules.state import Held, State
from ixion.language.records.crc import crc32c

logger = logging.getLogger(__name__)

NAME: Final = "delayed-records"  # without a suffix of log files, so that neither Kafka nor ixion loads it as one
MAGIC: Final = b"ixdelay2"
MOST_HELD: Final = 10_000  # notes of open transactions, which are written one by one, on the loop


class Captured(NamedTuple):
    head: bytes
    parts: list[tuple[int, int, bytes]]  # number of records, and the page or the bytes
    pages: Pages | None
    end_offset: int  # the snapshot covers the notes before it


def capture(state: State) -> Captured | None:
    """None if there is no note to identify the snapshot by, or if too many notes are not applied yet."""
    if state.backlog or state.held > MOST_HELD:
        return None
    end = state.journal.log.end_offset
    last = last_note(state.journal)
    if last is None:
        return None
    parts: list[tuple[int, int, bytes]] = []
    levels = []
    for level in state.pending.levels:
        buckets = []
        for number, bucket in level.buckets.items():
            stored = list(bucket.stored())
            buckets.append((number, [count for count, _, _ in stored]))
            parts += stored
        levels.append((level.until_ms, buckets))
    shards = []
    for number, count, used, columns in state.ids.stored():
        shards.append((number, count, used, len(columns)))
        parts.append((0, NO_PAGE, columns))
    head = {
        "byteorder": sys.byteorder,
        "end": end,
        "last": last,
        "levels": levels,
        "at_hand": state.pending.at_hand(),
        "ids": (state.ids.key.hex(), shards),
        "bytes": state.bytes,
        "target": state.target,
        "sending": state.sending,
        "open": [
            (producer, [(kind, offset, due_ms, name.hex(), size) for kind, offset, due_ms, name, size in held])
            for producer, held in state.open.items()
        ],
    }
    pages = state.pending.pages
    if pages is not None:
        pages.freeze()
    return Captured(json.dumps(head, separators=(",", ":")).encode(), parts, pages, end)


def write(captured: Captured, folder: str) -> None:
    """Blocks; for a worker thread. OSError or KafkaError if it fails; an older snapshot then stays."""
    path = os.path.join(folder, NAME)
    crc = 0
    with open(path + ".tmp", "wb", buffering=PIECE) as file:
        for piece in (MAGIC, len(captured.head).to_bytes(4, "big"), captured.head):
            file.write(piece)
            crc = crc32c(piece, crc)
        for count, page, stored in captured.parts:
            piece = stored
            if page != NO_PAGE:
                assert captured.pages is not None
                piece = captured.pages.read_bytes(page, count)
            file.write(piece)
            crc = crc32c(piece, crc)
        file.write(crc.to_bytes(4, "big"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)


def read(journal: Journal) -> tuple[State, int] | None:
    """The state, and the offset of the first note to apply; None if there is no valid snapshot."""
    path = os.path.join(journal.log.folder, NAME)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("%s cannot be read: %s", path, error)
        return None
    try:
        return restore(journal, memoryview(data))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        logger.warning("%s is damaged and ignored: %s", path, error)
        return None


def restore(journal: Journal, data: memoryview) -> tuple[State, int] | None:
    if len(data) < 16 or bytes(data[:8]) != MAGIC or crc32c(data[:-4], 0) != int.from_bytes(data[-4:], "big"):
        raise ValueError("its checksum is wrong")
    at = 12 + int.from_bytes(data[8:12], "big")
    head = json.loads(bytes(data[12:at]))
    if head["byteorder"] != sys.byteorder:
        return None
    offset, crc, epoch = head["last"]
    if note_at(journal, offset) != (offset, crc, epoch):
        logger.info("the snapshot of %s does not match its notes and is ignored", journal.log.name)
        return None
    state = State(journal)
    for level, (until_ms, buckets) in zip(state.pending.levels, head["levels"], strict=True):
        level.until_ms = until_ms
        for number, counts in buckets:
            bucket = level.bucket(number)
            for count in counts:
                middle, end = at + count * OFFSET_BYTES, at + count * 12
                offsets, times = array("q"), array("I")
                offsets.frombytes(data[at:middle])
                times.frombytes(data[middle:end])
                bucket.restore(offsets, times)
                state.pending.count += count
                at = end
    for due_ms, waiting in head["at_hand"]:
        state.pending.add(due_ms, waiting)
    key, shards = head["ids"]
    state.ids = ScheduleIds(bytes.fromhex(key))
    for number, count, used, size in shards:
        state.ids.restore(number, count, used, bytes(data[at : at + size]))
        at += size
    if at != len(data) - 4:
        raise ValueError("its size is wrong")
    state.bytes = head["bytes"]
    topic, target_end = head["target"]
    state.target = (topic, target_end)
    if head["sending"] is not None:
        topic, producer_id, sequence, end, facts = head["sending"]
        taken = tuple([(where, due_ms, size) for where, due_ms, size in facts])
        state.sending = Sending(topic, producer_id, sequence, end, taken)
    for producer, held in head["open"]:
        kept = cast(
            "list[Held]", [(kind, where, due, bytes.fromhex(name), size) for kind, where, due, name, size in held]
        )
        state.open[producer] = kept
        state.held += len(kept)
        state.held_bytes += sum(each[4] for each in kept)
    return state, head["end"]


def last_note(journal: Journal) -> tuple[int, int, int] | None:
    return note_at(journal, journal.log.end_offset - 1)


def note_at(journal: Journal, offset: int) -> tuple[int, int, int] | None:
    """Offset, checksum and leader epoch of the note that covers an offset."""
    if not journal.log.log_start <= offset < journal.log.end_offset:
        return None
    for view in batches(journal.log, offset, 1, Bound.END):
        if view.base_offset > offset:
            return None
        return int(view.base_offset), int(view.crc), int(view.leader_epoch)
    return None
