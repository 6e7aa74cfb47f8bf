"""The codes are those that Apache Kafka 4.3.0 gave to the same requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from ixion.broker.controller.controller import Controller
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.filling import fill

Assignment = Sequence[tuple[int, ...]] | None


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"broker.id": 5}) as running:
        running.create_topic("t")
        running.create_topic("steady", 3)
        yield running


def wish(name: str, count: int, assignment: Assignment = None) -> CreatePartitionsTopic:
    placed = None if assignment is None else tuple(CreatePartitionsAssignment(broker_ids=each) for each in assignment)
    return CreatePartitionsTopic(name=name, count=count, assignments=placed)


def grow(
    asking: Asking, *topics: CreatePartitionsTopic, validate_only: bool = False, version: int = -1
) -> list[tuple[str, int]]:
    request = CreatePartitionsRequest(topics=topics, timeout_ms=5000, validate_only=validate_only)
    results = asking.ask(request, CreatePartitionsResponse, version).results
    assert all(bool(each.error_message) is (each.error_code != ErrorCode.NONE) for each in results)
    return [(each.name, each.error_code) for each in results]


def count(broker: Broker, name: str) -> int:
    async def find(running: RealBroker) -> int:
        return len(running.parts.image.topics[name].partitions)

    return broker.call(find)


def test_topics_grow_in_every_version_and_are_written_at_once(broker: Broker, asking: Asking) -> None:
    for version in versions(ApiKey.CREATE_PARTITIONS):
        assert grow(asking, wish("t", version + 2), version=version) == [("t", ErrorCode.NONE)]
        assert count(broker, "t") == version + 2
        fill(broker.bootstrap, "t", partition=version + 1, count=1)


def test_checking_changes_nothing(broker: Broker, asking: Asking) -> None:
    assert grow(asking, wish("steady", 9), validate_only=True) == [("steady", ErrorCode.NONE)]
    assert count(broker, "steady") == 3
    assert grow(asking, wish("steady", 1), validate_only=True) == [("steady", ErrorCode.INVALID_PARTITIONS)]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wish("none", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (wish("steady", 3), ErrorCode.INVALID_PARTITIONS),
        (wish("steady", 2), ErrorCode.INVALID_PARTITIONS),
        (wish("steady", -1), ErrorCode.INVALID_PARTITIONS),
        (wish("steady", 4, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wish("steady", 4, [(5,), (5,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wish("steady", 4, [(6,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wish("steady", 4, [(5, 5)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (wish("steady", 4, [()]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be(broker: Broker, asking: Asking, topic: CreatePartitionsTopic, code: ErrorCode) -> None:
    assert grow(asking, topic) == [(topic.name, code)]
    assert count(broker, "steady") == 3


def test_each_topic_is_answered_for_itself(broker: Broker, asking: Asking) -> None:
    broker.create_topic("grows")
    answer = grow(asking, wish("grows", 2, [(5,)]), wish("none", 2), wish("steady", 4), wish("steady", 5))
    assert answer == [
        ("grows", ErrorCode.NONE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("steady", ErrorCode.INVALID_REQUEST),
    ]
    assert (count(broker, "grows"), count(broker, "steady")) == (2, 3)


def test_the_partitions_of_one_request_are_limited(broker: Broker, asking: Asking) -> None:
    broker.create_topic("wide")
    broker.create_topic("wider")
    both = [wish("wide", 6_000), wish("wider", 6_000)]
    for validate_only in (True, False):
        assert {code for _, code in grow(asking, *both, validate_only=validate_only)} == {ErrorCode.POLICY_VIOLATION}
    assert grow(asking, both[0], validate_only=True) == [("wide", ErrorCode.NONE)]


def test_the_timeout_is_that_of_the_whole_request(broker: Broker, asking: Asking) -> None:
    """The change of one topic waits for its turn, so none is done in time; the ones after it are never begun."""

    def queue_of(running: RealBroker) -> ChangeQueue:
        controller = running.parts.controller
        assert isinstance(controller, Controller)
        return controller.queue

    async def hold(running: RealBroker) -> None:
        await queue_of(running).turn.acquire()

    async def release(running: RealBroker) -> None:
        queue_of(running).turn.release()

    request = CreatePartitionsRequest(topics=(wish("late", 2), wish("t", 50)), timeout_ms=1, validate_only=False)
    broker.create_topic("late")
    before = count(broker, "t")
    broker.call(hold)
    try:
        results = asking.ask(request, CreatePartitionsResponse).results
    finally:
        broker.call(release)
    assert [(each.name, each.error_code) for each in results] == [
        ("late", ErrorCode.REQUEST_TIMED_OUT),
        ("t", ErrorCode.REQUEST_TIMED_OUT),
    ]
    assert grow(asking, wish("late", 3)) == [("late", ErrorCode.NONE)]  # after the one that was under way
    assert count(broker, "t") == before
