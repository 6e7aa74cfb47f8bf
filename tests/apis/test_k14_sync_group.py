from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import group_broker, join, sync
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def groups() -> Iterator[Broker]:
    with group_broker() as running:
        yield running


@pytest.fixture
def raw(groups: Broker) -> Iterator[Raw]:
    with Raw(groups.bootstrap) as client:
        yield client


@pytest.mark.parametrize("version", range(6))
def test_every_version(raw: Raw, version: int) -> None:
    group = f"v{version}"
    joined = join(raw, group, 5)
    synced = sync(raw, group, version, joined, own=b"mine")
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
    again = sync(raw, group, version, joined, own=b"other")
    assert (again.error_code, again.assignment) == (0, b"mine"), "a stable group does not listen to its leader"


def test_refusals(raw: Raw) -> None:
    joined = join(raw, "refusals", 5)

    def code(**fields: object) -> int:
        given = {
            "group_id": "refusals",
            "generation_id": 1,
            "member_id": joined.member_id,
            "assignments": (),
            "protocol_type": "consumer",
            "protocol_name": "range",
        }
        answer: int = raw.ask(ApiKey.SYNC_GROUP, 5, SyncGroupRequest(**{**given, **fields})).error_code
        return answer

    assert code(group_id="") == 24
    assert code(group_id="nobody") == 25
    assert code(member_id="forged") == 25
    assert code(generation_id=2) == 22
    assert code(protocol_name="sticky") == 23
    assert code(protocol_type=None) == code(protocol_name=None) == 23, "both must be named"
    assert code(protocol_type="connect") == 23
    assert code(group_instance_id="unknown") == 25
    assert code() == 0
