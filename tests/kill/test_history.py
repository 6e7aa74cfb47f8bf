"""The checker finds each kind of fault; otherwise its silence would mean nothing."""

from __future__ import annotations

import pytest

from tests.kill.history import History

SENT = {b"a": 0, b"b": 1, b"c": 2}
TOLD = {b"a": (0, 0), b"b": (0, 1)}
FOUND = [(0, 0, b"a"), (0, 1, b"b")]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("found", [FOUND, [*FOUND, (0, 2, b"c")]])
def test_a_good_history(idempotent: bool, found: list[tuple[int, int, bytes]]) -> None:
    assert History(SENT, TOLD, found).problems(idempotent) == []


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ([(0, 0, b"a")], "lost"),
        ([(0, 0, b"a"), (0, 2, b"b")], "moved"),
        ([(0, 0, b"a"), (1, 1, b"b")], "moved"),
        ([*FOUND, (0, 2, b"x")], "invented"),
        ([*FOUND, (0, 2, b"a")], "duplicate"),
        ([*FOUND, (1, 0, b"a")], "duplicate"),
        ([(0, 0, b"a"), (0, 1, b"b"), (0, 2, b"c"), (0, 3, b"b")], "disordered"),
    ],
)
def test_each_kind_of_fault(found: list[tuple[int, int, bytes]], kind: str) -> None:
    problems = History(SENT, TOLD, found).problems(idempotent=True)
    assert any(problem.startswith(kind) for problem in problems)


def test_a_producer_that_retries_may_write_twice() -> None:
    assert History(SENT, TOLD, [*FOUND, (0, 2, b"a")]).problems(idempotent=False) == []
