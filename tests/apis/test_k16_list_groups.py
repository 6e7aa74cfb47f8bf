from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, group_broker, lone_member
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with group_broker(offsets_topic_num_partitions=5) as running, Raw(running.bootstrap) as client:
        lone_member(client, "g")
        client.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("simple", {("t", 0): 1}))
        yield client


@pytest.mark.parametrize("version", range(6))
def test_every_version(raw: Raw, version: int) -> None:
    answer = raw.ask(ApiKey.LIST_GROUPS, version, ListGroupsRequest())
    assert answer.error_code == 0
    assert sorted((each.group_id, each.protocol_type) for each in answer.groups) == [("g", "consumer"), ("simple", "")]
    if version >= 4:
        assert {each.group_id: each.group_state for each in answer.groups} == {"g": "Stable", "simple": "Empty"}
    if version >= 5:
        assert {each.group_type for each in answer.groups} == {"classic"}


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        (("Stable",), (), ["g"]),
        (("empty", "dead"), (), ["simple"]),
        ((), ("Classic",), ["g", "simple"]),
        ((), ("consumer",), []),
        (("nonsense",), (), []),
        ((), ("nonsense",), []),
    ],
)
def test_filters(raw: Raw, states: tuple[str, ...], types: tuple[str, ...], expected: list[str]) -> None:
    answer = raw.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(states_filter=states, types_filter=types))
    assert sorted(each.group_id for each in answer.groups) == expected
