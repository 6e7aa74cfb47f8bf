"""The codes and watermarks are those that Apache Kafka 4.3.0 gave to the same requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.filling import fill


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("t", 2)
        running.create_topic("compacted", cleanup_policy="compact")
        running.create_topic("__consumer_offsets")
        fill(running.bootstrap, "t")
        yield running


def delete(asking: Asking, topic: str, *offsets: tuple[int, int], version: int = -1) -> list[tuple[int, int, int]]:
    partitions = tuple(DeleteRecordsPartition(partition_index=number, offset=offset) for number, offset in offsets)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=partitions),), timeout_ms=5000)
    (answer,) = asking.ask(request, DeleteRecordsResponse, version).topics
    assert answer.name == topic
    return [(each.partition_index, each.low_watermark, each.error_code) for each in answer.partitions]


def earliest(asking: Asking, topic: str, number: int) -> int:
    wish = ListOffsetsPartition(partition_index=number, timestamp=-2)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=(ListOffsetsTopic(name=topic, partitions=(wish,)),)
    )
    (found,) = asking.ask(request, ListOffsetsResponse).topics
    return int(found.partitions[0].offset)


def test_records_go_in_every_version(asking: Asking) -> None:
    for version in versions(ApiKey.DELETE_RECORDS):
        assert delete(asking, "t", (0, 3 + version), version=version) == [(0, 3 + version, ErrorCode.NONE)]
        assert earliest(asking, "t", 0) == 3 + version


def test_less_than_has_gone_already_changes_nothing(asking: Asking) -> None:
    delete(asking, "t", (0, 5))
    assert delete(asking, "t", (0, 2)) == [(0, 5, ErrorCode.NONE)]
    assert earliest(asking, "t", 0) == 5


def test_everything_that_can_be_seen(asking: Asking) -> None:
    assert delete(asking, "t", (0, -1)) == [(0, 10, ErrorCode.NONE)]
    assert earliest(asking, "t", 0) == 10


def test_each_partition_is_answered_for_itself(asking: Asking) -> None:
    assert delete(asking, "t", (0, 11), (1, 0), (7, 0)) == [
        (0, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (1, 0, ErrorCode.NONE),
        (7, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert delete(asking, "t", (0, -2)) == [(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert delete(asking, "none", (0, 1)) == [(0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert earliest(asking, "t", 0) == 0


def test_what_compaction_keeps_and_internal_topics_are_not_for_clients(broker: Broker, asking: Asking) -> None:
    fill(broker.bootstrap, "compacted", key=b"k")
    assert delete(asking, "compacted", (0, 1)) == [(0, -1, ErrorCode.POLICY_VIOLATION)]
    assert delete(asking, "__consumer_offsets", (0, 0)) == [(0, -1, ErrorCode.INVALID_TOPIC_EXCEPTION)]


def test_nothing_asked_for_is_answered_too(asking: Asking) -> None:
    request = DeleteRecordsRequest(topics=(), timeout_ms=5000)
    assert asking.ask(request, DeleteRecordsResponse).topics == ()
