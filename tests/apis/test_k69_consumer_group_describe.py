from __future__ import annotations

import pytest

from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import group_broker, lone_member
from tests.apis.raw import Raw


@pytest.mark.parametrize("version", [0, 1])
def test_every_version(version: int) -> None:
    with group_broker() as running, Raw(running.bootstrap) as raw:
        lone_member(raw, "classic")
        raw.ask(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=1_000,
                topic_partitions=(),
                subscribed_topic_names=("t",),
            ),
        )
        request = ConsumerGroupDescribeRequest(group_ids=("g", "classic", "nobody"), include_authorized_operations=True)
        group, classic, nobody = raw.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, version, request).groups
        assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (0, "Stable", 2, 2)
        assert group.authorized_operations > 0
        (member,) = group.members
        assert (member.member_id, member.client_id, member.subscribed_topic_names) == ("m", "raw", ("t",))
        assert [(each.topic_name, each.partitions) for each in member.assignment.topic_partitions] == [("t", (0, 1, 2))]
        if version >= 1:
            assert member.member_type == 1
        assert (classic.error_code, nobody.error_code) == (69, 69)
