from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import group_broker, lone_member
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def groups() -> Iterator[Broker]:
    with group_broker() as running:
        yield running


@pytest.mark.parametrize("version", range(5))
def test_every_version(groups: Broker, version: int) -> None:
    group = f"v{version}"
    with Raw(groups.bootstrap) as raw:
        member_id = lone_member(raw, group)

        def beat(generation: int, name: str = member_id, of: str = group) -> int:
            request = HeartbeatRequest(group_id=of, generation_id=generation, member_id=name)
            code: int = raw.ask(ApiKey.HEARTBEAT, version, request).error_code
            return code

        assert [beat(1), beat(0), beat(2), beat(-1), beat(2**31 - 1)] == [0, 22, 22, 22, 22]
        assert [beat(1, "forged"), beat(1, ""), beat(1, of="nobody"), beat(1, of="")] == [25, 25, 25, 24]
        if version >= 3:
            request = HeartbeatRequest(
                group_id=group, generation_id=1, member_id=member_id, group_instance_id="unknown"
            )
            assert raw.ask(ApiKey.HEARTBEAT, version, request).error_code == 25
