"""The checker is proven by one bad history for each anomaly: it finds that one, and nothing in a good one."""

from __future__ import annotations

import json

import pytest

from devtools.history.checker import check
from devtools.history.copies import check_copies
from devtools.history.operation import Operation, Outcome, Poll, Send, read_history

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


def op(process: int, outcome: Outcome, kind: str, *parts: Send | Poll) -> Operation:
    return Operation(process=process, outcome=outcome, kind=kind, parts=parts)


def s(key: str, value: str, offset: int | None = None) -> Send:
    return Send(key=key, value=value, offset=offset)


def p(key: str, *records: tuple[int, str]) -> Poll:
    return Poll(key=key, records=records)


GOOD = [
    op(1, OK, "txn", s("a", "1", 0), s("b", "2", 0), s("a", "3", 1)),
    op(1, FAIL, "txn", s("a", "4"), s("b", "5")),
    op(2, INFO, "txn", s("a", "6"), s("b", "7")),
    op(3, INFO, "txn", s("a", "8"), s("b", "9")),
    op(1, OK, "send", s("b", "10", 9)),
    op(9, OK, "poll", p("a", (0, "1"), (1, "3")), p("b", (0, "2"))),
    op(9, OK, "poll", p("a", (5, "6")), p("b", (6, "7"), (9, "10"))),
    op(9, OK, "assign"),
    op(9, OK, "poll", p("a", (0, "1"), (1, "3"), (5, "6")), p("b", (0, "2"), (6, "7"), (9, "10"))),
]

BAD = {
    "inconsistent-offsets": [
        op(1, OK, "send", s("a", "1", 0)),
        op(2, OK, "send", s("a", "2", 0)),
        op(9, OK, "poll", p("a", (0, "1"))),
        op(8, OK, "poll", p("a", (0, "2"))),
    ],
    "duplicate": [
        op(1, OK, "send", s("a", "1", 0)),
        op(9, OK, "poll", p("a", (0, "1"), (1, "1"))),
    ],
    "lost-write": [
        op(1, OK, "send", s("a", "1", 0)),
        op(2, OK, "send", s("a", "2", 1)),
        op(9, OK, "poll", p("a", (1, "2"))),
    ],
    "unseen": [
        op(1, OK, "send", s("a", "1", 0)),
        op(2, OK, "send", s("a", "2", 1)),
        op(9, OK, "poll", p("a", (0, "1"))),
    ],
    "aborted-read": [
        op(1, FAIL, "txn", s("a", "1")),
        op(9, OK, "poll", p("a", (0, "1"))),
    ],
    "torn-transaction": [
        op(1, INFO, "txn", s("a", "1"), s("b", "2")),
        op(9, OK, "poll", p("a", (0, "1"))),
    ],
    "precommitted-read": [
        op(1, OK, "txn", s("a", "1", 0), p("a", (0, "1"))),
    ],
    "poll-skip": [
        *(op(1, OK, "send", s("a", str(number), number)) for number in range(3)),
        op(9, OK, "poll", p("a", (0, "0"))),
        op(9, OK, "poll", p("a", (2, "2"))),
        op(8, OK, "poll", p("a", (0, "0"), (1, "1"), (2, "2"))),
    ],
    "int-poll-skip": [
        *(op(1, OK, "send", s("a", str(number), number)) for number in range(3)),
        op(9, OK, "poll", p("a", (0, "0"), (2, "2"))),
        op(8, OK, "poll", p("a", (0, "0"), (1, "1"), (2, "2"))),
    ],
    "nonmonotonic-poll": [
        *(op(1, OK, "send", s("a", str(number), number)) for number in range(2)),
        op(9, OK, "poll", p("a", (0, "0"), (1, "1"))),
        op(9, OK, "poll", p("a", (0, "0"))),
    ],
    "int-nonmonotonic-poll": [
        *(op(1, OK, "send", s("a", str(number), number)) for number in range(2)),
        op(9, OK, "poll", p("a", (1, "1"), (0, "0"))),
    ],
    "nonmonotonic-send": [
        op(1, OK, "send", s("a", "1", 7)),
        op(1, OK, "send", s("a", "2", 3)),
        op(9, OK, "poll", p("a", (3, "2"), (7, "1"))),
    ],
    "int-nonmonotonic-send": [
        op(1, OK, "txn", s("a", "1", 7), s("a", "2", 3)),
        op(9, OK, "poll", p("a", (3, "2"), (7, "1"))),
    ],
    "g1c": [
        op(1, OK, "txn", s("a", "1", 0), p("b", (0, "2"))),
        op(2, OK, "txn", s("b", "2", 0), p("a", (0, "1"))),
    ],
}


def test_a_good_history_is_good() -> None:
    assert check(GOOD) == []


@pytest.mark.parametrize("kind", BAD)
def test_each_anomaly_is_found_and_nothing_else(kind: str) -> None:
    assert {anomaly.kind for anomaly in check(BAD[kind])} == {kind}


def test_only_what_a_producer_without_idempotence_wrote_may_be_there_twice() -> None:
    history = [op(9, OK, "poll", p("a", (0, "1"), (1, "1"), (2, "2"), (3, "2")))]
    assert [anomaly.detail for anomaly in check(history, {"1"})] == ["a 2: offsets [2, 3]"]


def test_what_was_read_but_not_copied_is_found() -> None:
    history = [
        op(9, OK, "poll", p("from-0", (0, "1"), (1, "2")), p("from-1", (0, "3"))),
        op(9, OK, "poll", p("to-0", (0, "copy 1"), (1, "copy 3")), p("to-1", (0, "copy 4"))),
    ]
    assert [each.detail for each in check_copies(history, "from", "to")] == ["from-0 2", "from-1 3"]


def test_a_history_is_read_from_lines() -> None:
    lines = [
        json.dumps({"process": 1, "type": "invoke", "f": "txn", "value": [["send", "a", "1"]]}),
        json.dumps({"process": 2, "type": "invoke", "f": "send", "value": [["send", "a", "2"]]}),
        json.dumps({"process": 1, "type": "ok", "f": "txn", "value": [["send", "a", "1", 0]]}),
        json.dumps({"process": 9, "type": "ok", "f": "poll", "value": [["poll", "a", [[0, "1"]]]]}),
        '{"process": 2, "type": "o',
    ]
    assert list(read_history(lines)) == [
        op(1, OK, "txn", s("a", "1", 0)),
        op(9, OK, "poll", p("a", (0, "1"))),
        op(2, INFO, "send", s("a", "2")),
    ]
