"""What a snapshot has beyond Kafka's format: a restart knows as much about producers as the broker did before."""

from __future__ import annotations

import struct

import pytest

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.producer_entry import BatchTrace, ProducerEntry
from ixion.broker.log.snapshot_file import decode_snapshot, encode_snapshot
from ixion.broker.log.snapshot_trailer import MARK, MOST_RETRYING
from ixion.language.model.errors import ErrorCode
from ixion.language.records.crc import crc32c
from tests.log.support import NOW, Box, batch
from tests.log.test_producer_state import end, refused, send


def test_a_snapshot_has_the_earlier_batches_after_the_entries_that_kafka_reads() -> None:
    first, second = ProducerEntry(9, 3), ProducerEntry(10, 0)
    for number in range(7):
        first.add(3, BatchTrace(10 * number + 9, 1000 + 10 * number, 9, NOW + number))
    first.abort_offset = 1055
    first.used_ms = second.used_ms = NOW
    second.add(0, BatchTrace(3, 1100, 3, NOW))
    data = encode_snapshot([first, second])
    entries_end = 2 + 4 + 4 + 2 * 46
    assert len(data) == entries_end + 4 + 4 + 25 + 4 * 24
    known, other = decode_snapshot("x", data)
    facts = [(each.last_sequence, each.last_offset, each.offset_delta, each.timestamp) for each in known.batches]
    assert facts == [(10 * n + 9, 1000 + 10 * n, 9, NOW + n) for n in range(2, 7)]
    assert (known.abort_offset, known.used_ms) == (1055, NOW)
    assert (len(other.batches), other.abort_offset, other.used_ms) == (1, -1, NOW)
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFileError):
            decode_snapshot("x", bytes(flipped))


@pytest.mark.parametrize("tail", [b"", b"x", b"another trailer", MARK[:3]])
def test_bytes_of_others_after_the_entries_are_ignored(tail: bytes) -> None:
    entry = ProducerEntry(9, 3)
    entry.add(3, BatchTrace(4, 1000, 4, NOW))
    entry.used_ms = NOW
    (known,) = decode_snapshot("x", with_tail([entry], tail))
    assert (known.last_sequence, known.used_ms) == (4, NOW)


@pytest.mark.parametrize(
    "tail",
    [
        MARK,
        MARK + b"\0\0\0\1",
        MARK + b"\0\0\0\0" + b"more",
        MARK + b"\0\0\0\1" + (8).to_bytes(8, "big") + bytes(17),  # a producer without an entry
        MARK + b"\0\0\0\1" + (9).to_bytes(8, "big") + bytes(16) + b"\5" + bytes(5 * 24),  # six batches
    ],
)
def test_a_trailer_that_cannot_be_is_damage(tail: bytes) -> None:
    entry = ProducerEntry(9, 3)
    entry.add(3, BatchTrace(4, 1000, 4, NOW))
    entry.used_ms = NOW
    with pytest.raises(CorruptFileError):
        decode_snapshot("x", with_tail([entry], tail))


def with_tail(entries: list[ProducerEntry], tail: bytes) -> bytes:
    body = encode_snapshot(entries)[6:] + tail
    return struct.pack(">hI", 1, crc32c(body, 0)) + body


def test_a_large_snapshot_has_earlier_batches_of_the_last_producers_to_write() -> None:
    entries = []
    for number in range(MOST_RETRYING + 100):
        entry = ProducerEntry(number, 0)
        entry.used_ms = NOW
        entry.add(0, BatchTrace(0, 7 * number, 0, NOW))
        entry.add(0, BatchTrace(1, 7 * number + 3, 0, NOW))
        entries.append(entry)
    known = decode_snapshot("x", encode_snapshot(entries))
    assert [len(entry.batches) for entry in known] == [1] * 100 + [2] * MOST_RETRYING


@pytest.mark.parametrize("how", ["clean", "rolled and killed", "truncated", "truncated after a clean stop"])
@pytest.mark.parametrize("producers", [1, 3])
def test_each_of_the_last_five_batches_is_known_again_after_a_snapshot(box: Box, how: str, producers: int) -> None:
    """A leader that restarts must know a batch that a producer repeats, also if it was not its last one."""
    log = box.open()
    places: dict[tuple[int, int], int] = {}
    for number in range(8):
        for producer in range(producers):
            places[producer, number] = send(log, number, producer=producer)
    if how == "rolled and killed":
        log.roll()
        log.abandon()
        log = box.open()
    elif "clean" in how:
        log.close()
        log = box.open(clean=True)
    if "truncated" in how:
        log.roll()
        end = log.end_offset
        log.append_as_leader(batch(b"cut", producer=(77, 0, 0)), 0)
        log.truncate_to(end)
    for (producer, number), offset in places.items():
        if number >= 3:
            info = log.append_as_leader(batch(b"v", producer=(producer, 0, number)), 0)
            assert (info.duplicate, info.first_offset) == (True, offset)
        else:
            refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, number, producer=producer)
    for producer in range(producers):
        send(log, 8, producer=producer)


def test_a_clean_stop_does_not_forget_that_a_batch_was_aborted(box: Box) -> None:
    log = box.open()
    send(log, 0, transactional=True)
    end(log, commit=False)
    log.close()
    again = box.open(clean=True)
    refused(again, ErrorCode.UNKNOWN_PRODUCER_ID, 0, transactional=True)
    assert send(again, 1, transactional=True) == 2
