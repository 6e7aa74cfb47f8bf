from __future__ import annotations

import pytest

from ixion.language.protocol.messages.k09_offset_fetch import OffsetFetchRequest
from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, group_broker, lone_member
from tests.apis.raw import Raw


@pytest.mark.parametrize("version", range(4))
def test_every_version(version: int) -> None:
    with group_broker() as running, Raw(running.bootstrap) as raw:
        lone_member(raw, "busy")
        raw.ask(ApiKey.OFFSET_COMMIT, 9, commit_request("idle", {("t", 0): 1, ("t", 1): 2}))
        request = DeleteGroupsRequest(groups_names=("busy", "idle", "nobody", "idle"))
        answer = raw.ask(ApiKey.DELETE_GROUPS, version, request)
        assert [(each.group_id, each.error_code) for each in answer.results] == [
            ("busy", 68),
            ("idle", 0),
            ("nobody", 69),
        ]
        told = [each.error_message is not None for each in answer.results]
        assert told == ([True, False, True] if version == 3 else [False] * 3)
        assert raw.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id="idle", topics=None)).topics == ()
        assert raw.ask(ApiKey.DELETE_GROUPS, version, DeleteGroupsRequest(groups_names=())).results == ()
