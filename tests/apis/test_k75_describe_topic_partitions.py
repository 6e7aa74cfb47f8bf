"""The answers are those of Apache Kafka 4.3.0."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ixion.testing.broker import Broker
from tests.apis.asking import Asking

Place = tuple[str, int]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5, "max.request.partition.size.limit": 4}) as running:
        running.create_topic("b", 3)
        running.create_topic("a", 2)
        running.create_topic("__consumer_offsets")
        yield running


def ask(asking: Asking, *names: str, limit: int = 2000, cursor: Place | None = None) -> DescribeTopicPartitionsResponse:
    start = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicRequest(name=name) for name in names), response_partition_limit=limit, cursor=start
    )
    return asking.ask(request, DescribeTopicPartitionsResponse)


def page(
    asking: Asking, *names: str, limit: int = 2000, cursor: Place | None = None
) -> tuple[list[Place], Place | None]:
    answer = ask(asking, *names, limit=limit, cursor=cursor)
    found = [(topic.name or "", each.partition_index) for topic in answer.topics for each in topic.partitions]
    following = answer.next_cursor
    return found, None if following is None else (following.topic_name, following.partition_index)


def test_all_that_is_known_of_a_partition(asking: Asking) -> None:
    (topic,) = ask(asking, "a").topics
    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, "a", False)
    assert topic.topic_id != ZERO_ID
    assert topic.topic_authorized_operations == 3576
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    first = topic.partitions[0]
    assert (first.error_code, first.leader_id, first.leader_epoch) == (ErrorCode.NONE, 5, 0)
    assert first.replica_nodes == first.isr_nodes == (5,)
    assert first.eligible_leader_replicas == first.last_known_elr == first.offline_replicas == ()
    (internal,) = ask(asking, "__consumer_offsets").topics
    assert internal.is_internal


def test_page_by_page_in_the_order_of_names(asking: Asking) -> None:
    seen: list[Place] = []
    cursor: Place | None = None
    pages = 0
    while True:
        found, cursor = page(asking, limit=2, cursor=cursor)
        seen += found
        pages += 1
        if cursor is None:
            break
    assert seen == [("__consumer_offsets", 0), ("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]
    assert pages == 3


def test_limits(asking: Asking) -> None:
    assert page(asking, "b", "a", limit=2) == ([("a", 0), ("a", 1)], ("b", 0))
    assert page(asking, "b", "a", limit=0) == ([("a", 0)], ("a", 1))
    # The broker's own limit.
    assert page(asking, "b", "a") == ([("a", 0), ("a", 1), ("b", 0), ("b", 1)], ("b", 2))
    assert page(asking, "b", "a", cursor=("b", 2)) == ([("b", 2)], None)


def test_topics_that_have_gone_while_pages_were_turned(asking: Asking) -> None:
    assert page(asking, cursor=("aa", 1)) == ([("b", 0), ("b", 1), ("b", 2)], None)
    assert page(asking, cursor=("zz", 0)) == ([], None)


def test_what_is_not_there(asking: Asking) -> None:
    found = {topic.name: topic for topic in ask(asking, "a", "none", "a b").topics}
    assert {name: topic.error_code for name, topic in found.items()} == {
        "a": ErrorCode.NONE,
        "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert found["none"].topic_id == ZERO_ID


def test_cursors_that_make_no_sense(asking: Asking) -> None:
    for cursor in (("none", 0), ("b", -1)):
        codes = [topic.error_code for topic in ask(asking, "a", "b", cursor=cursor).topics]
        assert codes == [ErrorCode.INVALID_REQUEST] * 2
