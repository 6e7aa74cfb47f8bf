from __future__ import annotations

import pytest

from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.raw import Raw


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("key_type", [0, 1])
def test_one_key(transacting: Broker, raw: Raw, version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(key="some-group", key_type=key_type if version else 0)
    answer = raw.ask(ApiKey.FIND_COORDINATOR, version, request)
    assert (answer.error_code, f"{answer.host}:{answer.port}") == (0, transacting.bootstrap)
    assert answer.node_id >= 0


@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_keys(transacting: Broker, raw: Raw, version: int) -> None:
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=("a", "b", ""))
    answer = raw.ask(ApiKey.FIND_COORDINATOR, version, request)
    assert [(each.key, each.error_code, f"{each.host}:{each.port}") for each in answer.coordinators] == [
        (key, 0, transacting.bootstrap) for key in ("a", "b", "")
    ]


def test_no_keys_no_coordinators(raw: Raw) -> None:
    assert raw.ask(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=())).coordinators == ()


@pytest.mark.parametrize("key_type", [2, 3, -1, 127])
def test_other_types_of_key(raw: Raw, key_type: int) -> None:
    answer = raw.ask(ApiKey.FIND_COORDINATOR, 6, FindCoordinatorRequest(key_type=key_type, coordinator_keys=("a",)))
    (one,) = answer.coordinators
    assert (one.error_code, one.node_id, one.host, one.port) == (42, -1, "", -1)
    answer = raw.ask(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key_type=key_type, key="a"))
    assert (answer.error_code, answer.node_id) == (42, -1)
