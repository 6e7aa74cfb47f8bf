"""Streams groups are described as other groups are."""

from __future__ import annotations

from ixion.clients import Admin, TopicPartition
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.streams_group_kit import beat, subtopology, topology


def test_a_streams_group_is_listed_and_described() -> None:
    with Broker({"group.streams.initial.rebalance.delay.ms": 0}) as broker:
        for name in ("t", "u"):
            broker.create_topic(name, 2)
        with Raw(broker.bootstrap) as raw:
            raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="app", key_type=0))
            parts = topology(subtopology("0", "t"), subtopology("1", "t", "u"))
            assert beat(raw, "app", topology=parts).error_code == 0
        with Admin(broker.bootstrap) as admin:
            (listed,) = admin.list_groups()
            assert (listed.group, listed.kind, listed.state) == ("app", "streams", "Stable")
            found = admin.describe_groups(["app", "none"])
            assert list(found.faults) == ["none"]
            described = found["app"]
            assert (described.kind, described.assignor, described.state) == ("streams", "sticky", "Stable")
            (member,) = described.members
            assert member.partitions == (TopicPartition("t", 0), TopicPartition("t", 1))
