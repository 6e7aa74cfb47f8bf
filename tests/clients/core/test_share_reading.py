"""Which of the sent records were acquired, and what becomes of the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ixion.clients.core.share.reading import Found, extend, missing, read_acquired
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k78_share_fetch import AcquiredRecords
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.control import transaction_marker


def batch(first: int, count: int) -> bytes:
    builder = BatchBuilder(base_offset=first)
    for number in range(count):
        builder.append(None, b"%d" % (first + number))
    return bytes(builder.build())


def read(data: bytes, *acquired: tuple[int, int, int]) -> Found:
    ranges = [AcquiredRecords(first_offset=at, last_offset=to, delivery_count=times) for at, to, times in acquired]
    return read_acquired(data, ranges)


def offsets(found: Found) -> list[tuple[int, int]]:
    return [(record.offset, times) for record, times in found.records]


def test_only_acquired_records_are_taken_with_their_delivery_counts() -> None:
    found = read(batch(0, 5) + batch(5, 5), (2, 3, 1), (6, 7, 4))
    assert offsets(found) == [(2, 1), (3, 1), (6, 4), (7, 4)]
    assert (found.gaps, found.damaged, found.unread, found.fault) == ([], [], [], None)


def test_an_offset_without_a_record_is_a_gap() -> None:
    found = read(batch(0, 3) + batch(6, 2), (1, 7, 1))
    assert offsets(found) == [(1, 1), (2, 1), (6, 1), (7, 1)]
    assert found.gaps == [(3, 5)]


def test_a_marker_is_a_gap() -> None:
    marker = transaction_marker(
        commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=1, timestamp=1, base_offset=3
    )
    found = read(batch(0, 3) + marker + batch(4, 1), (0, 4, 1))
    assert offsets(found) == [(0, 1), (1, 1), (2, 1), (4, 1)]
    assert found.gaps == [(3, 3)]


def test_what_was_not_sent_is_released_and_never_taken_for_a_gap() -> None:
    cut = batch(5, 5)[:-3]
    found = read(batch(0, 5) + cut, (3, 9, 1))
    assert offsets(found) == [(3, 1), (4, 1)]
    assert found.unread == [(5, 9)]
    assert found.gaps == []


def test_a_damaged_batch_is_rejected_and_the_others_are_taken() -> None:
    broken = bytearray(batch(5, 5))
    broken[-1] ^= 1
    found = read(batch(0, 5) + bytes(broken) + batch(10, 2), (4, 11, 1))
    assert offsets(found) == [(4, 1), (10, 1), (11, 1)]
    assert found.damaged == [(5, 9)]
    assert found.fault is not None
    assert found.fault.code == ErrorCode.CORRUPT_MESSAGE


def test_nothing_but_noise_is_released() -> None:
    found = read(b"\xff" * 100, (4, 11, 1))
    assert found.records == []
    assert found.unread == [(4, 11)]


RANGES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=6)


@given(RANGES, RANGES)
def test_what_is_missing_agrees_with_sets(wanted: list[tuple[int, int]], had: list[tuple[int, int]]) -> None:
    def flat(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        extend(found, sorted((at, at + more) for at, more in ranges))
        return found

    ranges, known = flat(wanted), flat(had)
    left = missing([(at, to, 1) for at, to in ranges], known)
    every = {offset for at, to in ranges for offset in range(at, to + 1)}
    expected = every - {offset for at, to in known for offset in range(at, to + 1)}
    assert [offset for at, to in left for offset in range(at, to + 1)] == sorted(expected)
