from __future__ import annotations

import pytest

from ixion.model.errors import ErrorCode
from tests.apis.raw import Raw
from tests.apis.txn_kit import init, init_answer


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
def test_idempotent_producers_get_ids_of_their_own(raw: Raw, version: int) -> None:
    first, second = init(raw, None, version=version), init(raw, None, version=version)
    assert (first[1], second[1]) == (0, 0)
    assert second[0] == first[0] + 1


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_transactional_id_keeps_its_producer_id(raw: Raw, version: int) -> None:
    name = f"init {version}"
    first = init(raw, name, version=version)
    assert init(raw, name, version=version) == (first[0], 1)


@pytest.mark.parametrize(("version", "code"), [(3, "INVALID_PRODUCER_EPOCH"), (4, "PRODUCER_FENCED")])
def test_the_fenced_are_told_as_they_understand(raw: Raw, version: int, code: str) -> None:
    name = f"fenced {version}"
    producer_id, epoch = init(raw, name)
    init(raw, name)
    answer = init_answer(raw, name, producer_id, epoch, version=version)
    assert (ErrorCode(answer.error_code).name, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -5, -(2**31), 900_001, 2**31 - 1])
def test_timeouts_out_of_bounds(raw: Raw, timeout_ms: int) -> None:
    assert init_answer(raw, "timeouts", timeout_ms=timeout_ms).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_contradictions(raw: Raw) -> None:
    assert init_answer(raw, "").error_code == ErrorCode.INVALID_REQUEST
    assert init_answer(raw, "half", 3, -1).error_code == ErrorCode.INVALID_REQUEST
