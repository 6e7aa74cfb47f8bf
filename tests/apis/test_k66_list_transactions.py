from __future__ import annotations

from typing import Any

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k66_list_transactions import ListTransactionsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.apis.txn_kit import add, init


def listed(
    raw: Raw,
    *,
    version: int = 2,
    states: tuple[str, ...] = (),
    producers: tuple[int, ...] = (),
    duration_ms: int = -1,
    pattern: str | None = None,
) -> Any:
    request = ListTransactionsRequest(
        state_filters=states,
        producer_id_filters=producers,
        duration_filter=duration_ms,
        transactional_id_pattern=pattern,
    )
    return raw.ask(ApiKey.LIST_TRANSACTIONS, version, request)


def names(answer: Any) -> set[str]:
    return {each.transactional_id for each in answer.transaction_states}


@pytest.fixture
def two(raw: Raw) -> tuple[int, int]:
    """Producers of "list-open", which has a transaction, and of "list-idle"."""
    idle, _ = init(raw, "list-idle")
    producer_id, epoch = init(raw, "list-open")
    add(raw, "list-open", producer_id, epoch, 0)
    return producer_id, idle


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all(raw: Raw, two: tuple[int, int], version: int) -> None:
    assert {"list-open", "list-idle"} <= names(listed(raw, version=version))


def test_filters(raw: Raw, two: tuple[int, int]) -> None:
    assert names(listed(raw, states=("Ongoing",))) == {"list-open"}
    answer = listed(raw, states=("Empty", "ongoing", "Nonsense"))
    assert names(answer) == {"list-idle"}
    assert answer.unknown_state_filters == ("ongoing", "Nonsense")
    assert names(listed(raw, states=("Nonsense",))) == set()
    assert names(listed(raw, producers=(two[1],))) == {"list-idle"}
    assert names(listed(raw, states=("Ongoing",), duration_ms=3_600_000)) == set()
    assert names(listed(raw, pattern="list-.*")) == {"list-open", "list-idle"}
    assert names(listed(raw, pattern="list-")) == set(), "the whole id must match"
    init(raw, "list ü!")
    assert names(listed(raw, pattern=r"list\s.!")) == {"list ü!"}
    assert names(listed(raw, pattern="list[^-]+")) == {"list ü!"}
    assert names(listed(raw, pattern="(l+i*s?t?)+(-|-)*(o+)+p.*x")) == set()


@pytest.mark.parametrize("pattern", ["(", "[", "x" * 10_001, "((.?){49}){50}"])
def test_patterns_that_are_none(raw: Raw, pattern: str) -> None:
    assert listed(raw, pattern=pattern).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
