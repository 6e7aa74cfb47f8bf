"""The judge of the soak, with tables that are wrong in one way each."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.pipelines.ledger import Ledger, record, verdict


def rows() -> list[dict[str, Any]]:
    return [{"kafka_partition": n % 2, "kafka_offset": n // 2, **record(n)} for n in range(6)]


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger()
    for row in rows():
        made.acknowledged(row["kafka_partition"], row["kafka_offset"], row["n"])
    return made


def test_each_once_in_any_order(ledger: Ledger) -> None:
    assert ledger.problems(reversed(rows())) == []
    assert ledger.failed == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table[1:], r"\(0, 0\), record 0, is missing"),
        (lambda table: [*table, table[3]], r"\(1, 1\) is there 2 times"),
        (lambda table: [*table, {**table[0], "kafka_offset": 9}], r"\(0, 9\) was never acknowledged"),
        (lambda table: [{**table[0], "half": 1}, *table[1:]], r"\(0, 0\) is record 0, but the row says"),
        (lambda table: [{**table[0], "n": 2}, *table[1:]], r"\(0, 0\) is record 0, but the row says"),
    ],
    ids=["lost", "twice", "invented", "changed", "exchanged"],
)
def test_what_is_wrong_is_reported(ledger: Ledger, change: Any, said: str) -> None:
    (problem,) = ledger.problems(change(rows()))
    assert re.match(said, problem)


def test_one_place_for_two_records(ledger: Ledger) -> None:
    ledger.acknowledged(0, 0, 0)
    ledger.acknowledged(0, 0, 8)
    assert ledger.failed == ["records 0 and 8 were both acknowledged at 0/0"]


def test_what_is_missing_counts_only_after_the_last_record_was_read(ledger: Ledger) -> None:
    assert ledger.problems(rows()[1:], drained=False) == []
    (problem,) = ledger.problems([*rows()[1:], rows()[2]], drained=False)
    assert "is there 2 times" in problem


def test_a_soak_ends_with_a_verdict() -> None:
    assert verdict([], []) == (0, "verdict: right, each acknowledged record once and only once in every table")
    assert verdict([], ["a wait"])[0] == 2
    assert verdict(["lost"], ["a wait"])[1].startswith("verdict: wrong")
