"""How long to wait, and the pauses in between."""

from __future__ import annotations

from ixion.clients.deadline import Deadline, Pauses


def test_pauses_double_up_to_a_second() -> None:
    pauses = Pauses()
    for expected in (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0):
        assert 0.79 * expected <= pauses.next_s() <= 1.21 * expected


def test_a_deadline_that_has_passed() -> None:
    deadline = Deadline(0)
    assert deadline.passed
    assert deadline.left_s <= 0
    assert deadline.left_ms == 1
    Pauses().sleep(deadline)  # not at all, and no error for it


def test_a_deadline_to_come() -> None:
    deadline = Deadline(3600)
    assert not deadline.passed
    assert 3_500_000 < deadline.left_ms <= 3_600_000
