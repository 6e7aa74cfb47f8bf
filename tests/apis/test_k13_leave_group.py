from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.group_kit import group_broker, join, lone_member
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def groups() -> Iterator[Broker]:
    with group_broker() as running:
        yield running


@pytest.fixture
def raw(groups: Broker) -> Iterator[Raw]:
    with Raw(groups.bootstrap) as client:
        yield client


@pytest.mark.parametrize("version", range(3))
def test_one_leaves(raw: Raw, version: int) -> None:
    member_id = lone_member(raw, f"one{version}")
    request = LeaveGroupRequest(group_id=f"one{version}", member_id=member_id)
    assert [raw.ask(ApiKey.LEAVE_GROUP, version, request).error_code for _ in range(2)] == [0, 25]
    assert raw.ask(ApiKey.LEAVE_GROUP, version, LeaveGroupRequest(group_id="no", member_id="x")).error_code == 25


@pytest.mark.parametrize("version", range(3, 6))
def test_several_leave(raw: Raw, version: int) -> None:
    group = f"several{version}"
    join(raw, group, 5, group_instance_id="i")
    leaving = (MemberIdentity(member_id="", group_instance_id="i"), MemberIdentity(member_id="stranger"))
    answer = raw.ask(ApiKey.LEAVE_GROUP, version, LeaveGroupRequest(group_id=group, members=leaving))
    assert answer.error_code == 0
    assert [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members] == [
        ("", "i", 0),
        ("stranger", None, 25),
    ]


def test_a_group_without_a_name(raw: Raw) -> None:
    assert raw.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(group_id="", members=())).error_code == 24
