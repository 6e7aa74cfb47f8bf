from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ixion.language.protocol.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ixion.language.protocol.messages.k57_update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, group_broker
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with group_broker() as running, Raw(running.bootstrap) as client:
        yield client


def beat(raw: Raw, version: int, **fields: Any) -> Any:
    given = {"group_id": f"v{version}", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 1_000}
    joining = {"topic_partitions": (), "subscribed_topic_names": ("t",)} if fields.get("member_epoch", 0) == 0 else {}
    request = ConsumerGroupHeartbeatRequest(**{**given, **joining, **fields})
    return raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_comes_and_goes(raw: Raw, version: int) -> None:
    joined = beat(raw, version)
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
    assert joined.heartbeat_interval_ms == 5_000
    ((topic,),) = [joined.assignment.topic_partitions]
    assert topic.partitions == (0, 1, 2)
    quiet = beat(raw, version, member_epoch=2)
    assert (quiet.error_code, quiet.member_epoch, quiet.assignment) == (0, 2, None)
    left = beat(raw, version, member_epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    assert beat(raw, version, member_epoch=2).error_code == 25


def test_version_0_names_members(raw: Raw) -> None:
    assert beat(raw, 0, group_id="named", member_id="").member_id


def test_patterns_come_with_version_1(raw: Raw) -> None:
    joined = beat(raw, 1, group_id="pattern", subscribed_topic_names=None, subscribed_topic_regex="t+")
    assert [each.partitions for each in joined.assignment.topic_partitions] == [(0, 1, 2)]
    refused = beat(raw, 1, group_id="bad", subscribed_topic_names=None, subscribed_topic_regex="*")
    assert (refused.error_code, refused.assignment) == (128, None)
    assert refused.error_message


def test_a_pattern_matches_internal_topics_too(raw: Raw) -> None:
    joined = beat(raw, 1, group_id="inside", subscribed_topic_names=None, subscribed_topic_regex="__consumer_off.*")
    (assigned,) = joined.assignment.topic_partitions
    assert assigned.partitions


def test_the_consumer_protocol_needs_group_version_1(raw: Raw) -> None:
    def set_level(level: int, kind: int) -> None:
        update = FeatureUpdateKey(
            feature="group.version", max_version_level=level, allow_downgrade=False, upgrade_type=kind
        )
        request = UpdateFeaturesRequest(feature_updates=(update,))
        assert raw.ask(ApiKey.UPDATE_FEATURES, 2, request).error_code == 0

    beat(raw, 1, group_id="level")
    describe = ConsumerGroupDescribeRequest(group_ids=("level",), include_authorized_operations=False)
    set_level(0, 2)
    try:
        assert beat(raw, 1, group_id="level").error_code == 35
        assert [each.error_code for each in raw.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, describe).groups] == [35]
    finally:
        set_level(1, 1)
    assert beat(raw, 1, group_id="level").error_code == 0


def test_epochs_ahead_are_fenced(raw: Raw) -> None:
    beat(raw, 1, group_id="fenced")
    assert beat(raw, 1, group_id="fenced", member_epoch=2**31 - 1).error_code == 110
    assert beat(raw, 1, group_id="fenced", member_epoch=-(2**31)).error_code == 42


def test_a_group_may_have_timeouts_of_its_own(raw: Raw) -> None:
    alteration = AlterConfigsResource(
        resource_type=32,
        resource_name="own",
        configs=(AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value="9000"),),
    )
    request = IncrementalAlterConfigsRequest(resources=(alteration,), validate_only=False)
    (altered,) = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    assert altered.error_code == 0
    assert beat(raw, 1, group_id="own").heartbeat_interval_ms == 9_000
    assert beat(raw, 1, group_id="not its own").heartbeat_interval_ms == 5_000


def test_members_commit_by_epoch_and_by_no_version_that_knows_none(raw: Raw) -> None:
    epoch = beat(raw, 1, group_id="commits").member_epoch

    def code(version: int, named: int) -> int:
        request = commit_request("commits", {("t", 0): 1}, member_id="m", generation_id_or_member_epoch=named)
        answer: int = raw.ask(ApiKey.OFFSET_COMMIT, version, request).topics[0].partitions[0].error_code
        return answer

    assert [code(9, epoch), code(9, epoch + 1), code(8, epoch)] == [0, 113, 35]
