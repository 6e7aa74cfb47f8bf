"""The model of a compacted topic says what is wrong with a read or a log, and nothing about whole ones."""

from __future__ import annotations

from devtools.history.operation import Outcome
from devtools.sim.keyed import Keyed, Write


def model(*writes: Write) -> Keyed:
    keyed = Keyed()
    for write in writes:
        keyed.add(write)
    return keyed


A1, A2, A3 = (Write(b"a", b"%d" % number, Outcome.OK, number) for number in (1, 2, 3))
GONE = Write(b"a", None, Outcome.OK, 4)
ABORTED = Write(b"a", b"5", Outcome.FAIL)
UNKNOWN = Write(b"a", b"6")


def test_a_reader_must_find_the_last_committed_value() -> None:
    keyed = model(A1, A2, ABORTED)
    assert not keyed.wrong_read([(1, b"a", b"1"), (2, b"a", b"2")], whole=True)
    assert not keyed.wrong_read([(2, b"a", b"2")], whole=True)
    assert keyed.wrong_read([(1, b"a", b"1")], whole=True) == ["b'a' is b'1', not b'2'"]
    assert keyed.wrong_read([], whole=True) == ["b'a' is None, not b'2'"]


def test_what_nobody_knows_may_be_there_or_not() -> None:
    keyed = model(A1, UNKNOWN)
    assert not keyed.wrong_read([(1, b"a", b"1")], whole=True)
    assert not keyed.wrong_read([(7, b"a", b"6")], whole=True)
    assert keyed.wrong_read([], whole=True)


def test_aborted_doubled_and_swapped_records_are_wrong() -> None:
    keyed = model(A1, ABORTED, A2)
    assert "aborted" in keyed.wrong_read([(1, b"a", b"5"), (2, b"a", b"2")], whole=True)[0]
    assert "is at 2 and at 3" in keyed.wrong_read([(2, b"a", b"2"), (3, b"a", b"2")], whole=True)[0]
    assert "was read after" in keyed.wrong_read([(2, b"a", b"1"), (1, b"a", b"2")], whole=True)[0]


def test_a_deleted_key_does_not_come_back() -> None:
    keyed = model(A1, GONE)
    assert not keyed.wrong_read([(1, b"a", b"1"), (4, b"a", None)], whole=True)
    assert not keyed.wrong_read([], whole=True)
    assert keyed.wrong_read([(1, b"a", b"1")], whole=True)


def test_delete_records_may_take_the_last_value_away_but_not_bring_an_earlier_one_back() -> None:
    keyed = model(A1, A2)
    keyed.deleted = 3
    assert not keyed.wrong_read([], whole=True)
    assert keyed.wrong_read([(1, b"a", b"1")], whole=True)
    assert not keyed.wrong_read([(1, b"a", b"1")], whole=False)  # it read that before the deletion
    keyed.deleted = 2
    assert keyed.wrong_read([], whole=True)


def test_each_replica_has_the_last_record_of_a_key_at_its_offset() -> None:
    keyed = model(A1, A2, A3)
    assert not keyed.wrong_log([(3, b"a", b"3")], 0)
    assert not keyed.wrong_log([], 4)
    assert keyed.wrong_log([(2, b"a", b"2")], 0) == ["b'a' lacks b'3' at 3: None"]
    assert "acknowledged at 3, is at 4" in keyed.wrong_log([(4, b"a", b"3")], 0)[0]
    assert keyed.wrong_log([(1, b"a", b"1")], 0)
    gone = model(A1, GONE)
    assert gone.wrong_log([], 0) == ["b'a' lacks None at 4: None"]
    assert not gone.wrong_log([(4, b"a", None)], 0)


def test_superseded_records_are_found() -> None:
    keyed = Keyed()
    assert keyed.superseded([(1, b"a", b"1"), (2, b"b", b"2"), (3, b"a", None)]) == [1]
    assert not keyed.superseded([(2, b"b", b"2"), (3, b"a", None)])
