from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k15_describe_groups import DescribeGroupsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import SUBSCRIPTION, group_broker, lone_member
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with group_broker() as running, Raw(running.bootstrap) as client:
        lone_member(client, "g")
        yield client


@pytest.mark.parametrize("version", range(7))
def test_every_version(raw: Raw, version: int) -> None:
    request = DescribeGroupsRequest(groups=("g", "nobody"), include_authorized_operations=version >= 3)
    group, nobody = raw.ask(ApiKey.DESCRIBE_GROUPS, version, request).groups
    assert (group.error_code, group.group_state, group.protocol_type, group.protocol_data) == (
        0,
        "Stable",
        "consumer",
        "range",
    )
    (member,) = group.members
    assert (member.client_id, member.client_host, member.member_metadata, member.member_assignment) == (
        "raw",
        "/127.0.0.1",
        SUBSCRIPTION,
        b"all",
    )
    assert nobody.group_state == "Dead"
    assert nobody.error_code == (69 if version >= 6 else 0)
    if version >= 3:
        assert group.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
