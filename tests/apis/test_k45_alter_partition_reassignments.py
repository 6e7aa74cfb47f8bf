"""The codes are those that a single Apache Kafka 4.3.0 gave to the same requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5}) as running:
        running.create_topic("t")
        yield running


@pytest.mark.parametrize(
    ("topic", "number", "replicas", "code"),
    [
        ("t", 0, (5,), ErrorCode.NONE),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 0, (6,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (5, 5), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 9, (5,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, (5,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_one_broker_can_say(
    asking: Asking, topic: str, number: int, replicas: tuple[int, ...] | None, code: ErrorCode
) -> None:
    wish = ReassignableTopic(name=topic, partitions=(ReassignablePartition(partition_index=number, replicas=replicas),))
    for version in versions(ApiKey.ALTER_PARTITION_REASSIGNMENTS):
        request = AlterPartitionReassignmentsRequest(topics=(wish,))
        answer = asking.ask(request, AlterPartitionReassignmentsResponse, version)
        (result,) = answer.responses[0].partitions
        assert (answer.error_code, result.partition_index, result.error_code) == (ErrorCode.NONE, number, code)
        assert bool(result.error_message) is (code != ErrorCode.NONE)


def test_the_replication_factor_can_be_held_fast(asking: Asking) -> None:
    wish = ReassignableTopic(name="t", partitions=(ReassignablePartition(partition_index=0, replicas=(5, 6)),))
    request = AlterPartitionReassignmentsRequest(allow_replication_factor_change=False, topics=(wish,))
    (topic,) = asking.ask(request, AlterPartitionReassignmentsResponse).responses
    assert topic.partitions[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
