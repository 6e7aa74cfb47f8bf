"""The three indexes: exact bytes, lookups against a plain model, truncation, damage."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.broker.log.offset_index import OffsetIndex
from ixion.broker.log.time_index import TimeIndex
from ixion.broker.log.txn_index import AbortedTxn, TxnIndex, read_aborted

FILES = Files()
steps = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000)), max_size=40)


def test_the_documented_example(tmp_path: Path) -> None:
    index = OffsetIndex(FILES, str(tmp_path / "x.index"), 100, -1)
    for offset, position in [(119, 0), (147, 4200), (180, 8800)]:
        index.append(offset, position)
    assert [index.lookup(offset) for offset in (100, 118, 119, 146, 147, 150, 179, 180, 999)] == [
        0, 0, 0, 0, 4200, 4200, 4200, 8800, 8800,
    ]  # fmt: skip
    index.file.write()
    assert (tmp_path / "x.index").read_bytes() == struct.pack(">6i", 19, 0, 47, 4200, 80, 8800)


@settings(deadline=None)
@given(steps, st.integers(0, 3000), st.booleans())
def test_an_offset_is_found_where_a_plain_list_has_it(steps: list[tuple[int, int]], wanted: int, mapped: bool) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        index = OffsetIndex(FILES, folder + "/x.index", 10, -1)
        model = []
        offset, position = 10, 0
        for step, size in steps:
            offset, position = offset + step, position + size
            index.append(offset, position)
            model.append((offset, position))
        if mapped:
            index.file.write()
            index.file.release()
        assert index.entries() == model
        assert index.lookup(wanted) == max((p for o, p in model if o <= wanted), default=0)
        assert index.floor_position(wanted) == max((p for _, p in model if p <= wanted), default=0)
        index.truncate(wanted)
        assert index.entries() == [(o, p) for o, p in model if o < wanted]
        index.append(100_000, 10_000_000)
        index.file.write()
        index.file.release()
        again = OffsetIndex(FILES, folder + "/x.index", 10, (len(index.entries())) * 8)
        assert again.entries() == [*[(o, p) for o, p in model if o < wanted], (100_000, 10_000_000)]
        index.file.release()
        again.file.release()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 20)), max_size=40), st.integers(0, 4000))
def test_a_time_is_found_where_a_plain_list_has_it(steps: list[tuple[int, int]], wanted: int) -> None:
    index = TimeIndex(FILES, "/nowhere", 5, -1)
    model: list[tuple[int, int]] = []
    timestamp, offset = 0, 5
    for step, more in steps:
        timestamp, offset = timestamp + step, offset + more
        index.append(timestamp, offset)
        if not model or timestamp > model[-1][0]:
            model.append((timestamp, offset))
    assert index.entries() == model
    assert index.first_offset_at(wanted) == min((o for t, o in model if t >= wanted), default=-1)
    assert index.last() == (model[-1] if model else (-1, 5))
    index.truncate(wanted)
    assert index.entries() == [(t, o) for t, o in model if o < wanted]


def test_a_time_entry_is_twelve_bytes(tmp_path: Path) -> None:
    index = TimeIndex(FILES, str(tmp_path / "x.timeindex"), 100, -1)
    index.append(1_700_000_000_123, 142)
    index.file.write()
    assert (tmp_path / "x.timeindex").read_bytes() == struct.pack(">qi", 1_700_000_000_123, 42)


def test_an_index_is_full_one_entry_before_its_limit() -> None:
    index = OffsetIndex(FILES, "/nowhere", 0, -1)
    index.append(1, 1)
    assert index.is_full(15)
    assert not index.is_full(16)


def test_aborted_transactions_are_found_by_overlap(tmp_path: Path) -> None:
    path = str(tmp_path / "x.txnindex")
    index = TxnIndex(FILES, path, 0, -1)
    first = AbortedTxn(7, 10, 20, 5)
    second = AbortedTxn(8, 5, 30, 31)
    third = AbortedTxn(7, 35, 40, 41)
    for txn in (first, second, third):
        index.append(txn)
    for start, end, expected, complete in [
        (0, 5, [], True),
        (0, 6, [second], True),
        (0, 11, [first, second], True),
        (21, 30, [second], True),
        (31, 35, [], True),
        (31, 36, [third], True),
        (41, 50, [], False),
    ]:
        found: list[AbortedTxn] = []
        assert index.collect(start, end, found) is complete, (start, end)
        assert found == expected, (start, end)
    index.write()
    assert Path(path).read_bytes()[:34] == struct.pack(">hqqqq", 0, 7, 10, 20, 5)
    index.truncate(40)
    index.write()
    assert read_aborted(path, 0) == [first, second]
    index.truncate(0)
    index.write()
    assert read_aborted(path, 0) == []


def test_a_last_stable_offset_behind_the_marker_ends_no_search(tmp_path: Path) -> None:
    """Apache Kafka's followers write such entries: the next transaction of the fetch began there, and was truncated."""
    path = str(tmp_path / "00000000000000000000.txnindex")
    first, second = AbortedTxn(7, 10, 20, 26), AbortedTxn(8, 22, 30, 31)
    Path(path).write_bytes(b"".join([struct.pack(">hqqqq", 0, *txn.fields()) for txn in (first, second)]))
    assert read_aborted(path, 0) == [first, second]
    index = TxnIndex(FILES, path, 0, 68)
    found: list[AbortedTxn] = []
    assert index.collect(10, 25, found)
    assert found == [first, second]


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00",
        struct.pack(">hqqqq", 1, 7, 10, 20, 5),
        struct.pack(">hqqqq", 0, 7, 30, 20, 5),
        struct.pack(">hqqqq", 0, -7, 10, 20, 5),
        struct.pack(">hqqqq", 0, 7, 10, 20, -5),
    ],
)
def test_a_damaged_transaction_index_is_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "x.txnindex"
    path.write_bytes(damage)
    with pytest.raises(CorruptFileError, match="txnindex"):
        TxnIndex(FILES, str(path), 0, len(damage)).check()


def test_a_damaged_offset_index_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(struct.pack(">ii", 5, 10_000))
    with pytest.raises(CorruptFileError, match=r"x\.index"):
        OffsetIndex(FILES, str(path), 0, 8).check(9_000)
