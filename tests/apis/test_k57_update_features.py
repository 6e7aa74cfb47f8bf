from __future__ import annotations

from pathlib import Path

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions

UPGRADE, SAFE, UNSAFE = 1, 2, 3
FEATURE = "transaction.version"


def update(
    asking: Asking, *changes: tuple[str, int, int], validate_only: bool = False, version: int = -1
) -> tuple[int, str | None]:
    updates = tuple(
        FeatureUpdateKey(
            feature=name,
            max_version_level=level,
            allow_downgrade=version == 0 and kind != UPGRADE,
            upgrade_type=kind if version != 0 else UPGRADE,
        )
        for name, level, kind in changes
    )
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
    answer = asking.ask(request, UpdateFeaturesResponse, version)
    if answer.error_code == ErrorCode.NONE and 0 <= version < 2:
        assert [each.feature for each in answer.results] == [name for name, _, _ in changes]
    return answer.error_code, answer.error_message


def level(asking: Asking) -> int:
    answer = asking.ask(
        ApiVersionsRequest(client_software_name="test", client_software_version="1"), ApiVersionsResponse
    )
    return {each.name: each.max_version_level for each in answer.finalized_features}.get(FEATURE, 0)


def test_levels_go_down_and_up_in_every_version(asking: Asking) -> None:
    assert level(asking) == 2
    for version in versions(ApiKey.UPDATE_FEATURES):
        assert update(asking, (FEATURE, 1, SAFE), version=version) == (ErrorCode.NONE, None)
        assert level(asking) == 1
        assert update(asking, (FEATURE, 2, UPGRADE), version=version) == (ErrorCode.NONE, None)
        assert level(asking) == 2
    assert update(asking, (FEATURE, 0, UNSAFE)) == (ErrorCode.NONE, None)
    assert level(asking) == 0
    assert update(asking, (FEATURE, 2, UPGRADE)) == (ErrorCode.NONE, None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([("no.such", 1, UPGRADE)], "unknown feature"),
        ([(FEATURE, 9, UPGRADE)], "0 to 2"),
        ([(FEATURE, -1, SAFE)], "0 to 2"),
        ([(FEATURE, 1, UPGRADE)], "downgrade"),
        ([(FEATURE, 1, 7)], "upgrade type"),
        ([("metadata.version", 0, UNSAFE)], "metadata.version"),
        ([(FEATURE, 1, SAFE), ("no.such", 1, UPGRADE)], "no.such"),
    ],
)
def test_all_or_nothing(asking: Asking, changes: list[tuple[str, int, int]], says: str) -> None:
    for version in (1, 2):
        code, message = update(asking, *changes, version=version)
        assert code == ErrorCode.INVALID_UPDATE_VERSION
        assert says in (message or "")
        assert level(asking) == 2


def test_a_downgrade_does_not_raise_and_logs_nothing_twice(asking: Asking) -> None:
    assert update(asking, (FEATURE, 1, SAFE)) == (ErrorCode.NONE, None)
    assert update(asking, (FEATURE, 2, SAFE))[0] == ErrorCode.INVALID_UPDATE_VERSION
    assert update(asking, (FEATURE, 2, UPGRADE), (FEATURE, 1, SAFE))[0] == ErrorCode.INVALID_REQUEST
    assert update(asking, (FEATURE, 2, UPGRADE)) == (ErrorCode.NONE, None)


def test_checking_changes_nothing(asking: Asking) -> None:
    assert update(asking, (FEATURE, 1, SAFE), validate_only=True) == (ErrorCode.NONE, None)
    assert level(asking) == 2


def test_levels_survive_a_restart(tmp_path: Path) -> None:
    for before in (2, 1):
        with Broker(data=str(tmp_path)) as running, Asking(running.bootstrap) as asking:
            assert level(asking) == before
            assert update(asking, (FEATURE, 1, SAFE)) == (ErrorCode.NONE, None)
