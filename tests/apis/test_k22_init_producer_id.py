from __future__ import annotations

import time
from pathlib import Path

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.txn_kit import batch, init, init_answer, produce


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
def test_a_fenced_producer_gets_a_code_that_its_version_knows(raw: Raw, version: int, code: str) -> None:
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


@pytest.mark.parametrize("made_up", [2**63 - 1, 2**62, 5_432])
def test_made_up_producer_ids_leave_enough_for_others(tmp_path: Path, made_up: int) -> None:
    """After a restart ids are given out above all that logs know of, for a log may be older than what gave them out."""
    with Broker(data=str(tmp_path)) as broker, Raw(broker.bootstrap) as raw:
        broker.create_topic("t")
        init(raw, None)
        now_ms = int(time.time() * 1000)  # a producer that was silent for a day is forgotten
        assert produce(raw, None, batch(made_up, 0, transactional=False, timestamp_ms=now_ms)) == "NONE"
    with Broker(data=str(tmp_path)) as broker, Raw(broker.bootstrap) as raw:
        producer_id, epoch = init(raw, None)
        assert (producer_id, epoch) == (6_000 if made_up == 5_432 else 1_000, 0)
