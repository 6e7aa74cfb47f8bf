from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from ixion.language.model.errors import ErrorCode, KafkaError


def test_codes_are_kafkas_codes_without_a_gap() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert int(ErrorCode.SHARE_SESSION_LIMIT_REACHED) == 133


def test_a_code_says_what_the_client_does() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.stale_metadata
    assert ErrorCode.REQUEST_TIMED_OUT.retriable
    assert not ErrorCode.REQUEST_TIMED_OUT.stale_metadata
    assert not ErrorCode.INVALID_REQUIRED_ACKS.retriable
    assert not ErrorCode.NONE.retriable


def test_every_code_explains_itself_once() -> None:
    explanations = [code.explanation for code in ErrorCode]
    assert all(explanations)
    assert len(set(explanations)) == len(explanations)


def test_unknown_codes_are_refused() -> None:
    with pytest.raises(ValueError, match="134"):
        ErrorCode(134)


def test_the_exception_says_what_was_wrong() -> None:
    error = KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, "acks is 2; it must be -1, 0 or 1")
    assert str(error) == "INVALID_REQUIRED_ACKS: acks is 2; it must be -1, 0 or 1"
    assert error.code is ErrorCode.INVALID_REQUIRED_ACKS


def test_without_a_message_the_code_explains() -> None:
    assert str(KafkaError(ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER: another broker is the controller"


@pytest.mark.parametrize("clone", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_the_exception_survives_a_copy(clone: Callable[[KafkaError], KafkaError]) -> None:
    twin = clone(KafkaError(ErrorCode.NOT_CONTROLLER, "broker 3 is"))
    assert (twin.code, twin.message) == (ErrorCode.NOT_CONTROLLER, "broker 3 is")
