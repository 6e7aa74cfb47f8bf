from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k15_describe_groups import DescribeGroupsRequest
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import group_broker
from tests.apis.raw import Raw
from tests.apis.share_group_kit import beat, delete_group, describe


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with group_broker() as running, Raw(running.bootstrap) as client:
        yield client


def test_a_group_with_a_member(raw: Raw) -> None:
    beat(raw, "g")
    found = describe(raw, "g")
    assert (found.error_code, found.group_state, found.assignor_name) == (0, "Stable", "simple")
    assert (found.group_epoch, found.assignment_epoch) == (2, 2)
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("m", 2, ("t",))
    assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [("t", (0, 1, 2))]


def test_unknown_groups(raw: Raw) -> None:
    found = describe(raw, "nothing")
    assert (found.error_code, found.error_message) == (69, "Group nothing not found.")


def test_as_other_apis_see_it(raw: Raw) -> None:
    beat(raw, "seen")
    listed = {each.group_id: each for each in raw.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups}
    assert (listed["seen"].group_type, listed["seen"].protocol_type) == ("share", "share")
    assert listed["seen"].group_state == "Stable"
    only = ListGroupsRequest(types_filter=("Share",))
    assert "seen" in [each.group_id for each in raw.ask(ApiKey.LIST_GROUPS, 5, only).groups]
    request = DescribeGroupsRequest(groups=("seen",))
    (new,) = raw.ask(ApiKey.DESCRIBE_GROUPS, 6, request).groups
    assert (new.error_code, new.group_state) == (69, "Dead")
    (old,) = raw.ask(ApiKey.DESCRIBE_GROUPS, 5, request).groups
    assert (old.error_code, old.group_state) == (0, "Dead")


def test_only_an_empty_group_is_deleted(raw: Raw) -> None:
    beat(raw, "goes")
    assert delete_group(raw, "goes") == 68
    beat(raw, "goes", epoch=-1)
    assert delete_group(raw, "goes") == 0
    assert describe(raw, "goes").error_code == 69
    assert beat(raw, "goes").member_epoch == 2, "a new group"
