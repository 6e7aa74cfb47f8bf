"""Changes of very many partitions: limited, and made in turns of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ixion.broker.controller.planning import MAX_PARTITIONS_PER_REQUEST, NewTopic
from ixion.broker.controller.topic_nodes import operations_to_create, steps_to_create
from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.broker.metadata.node import Operation
from ixion.language.model.errors import ErrorCode
from ixion.timer.turns import Steps
from tests.controller.realm import Realm, create

T = TypeVar("T")


def turns_of(realm: Realm, work: Coroutine[Any, Any, T]) -> tuple[T, int]:
    """What the work returns, and how many turns everybody else had while it was done."""

    async def count() -> tuple[T, int]:
        turns = 0
        task = asyncio.ensure_future(work)
        while not task.done():
            await asyncio.sleep(0)
            turns += 1
        return await task, turns

    return realm.run(count())


def test_the_partitions_of_all_topics_of_a_request_are_limited_before_one_is_planned(realm: Realm) -> None:
    realm.start()
    half = MAX_PARTITIONS_PER_REQUEST // 2
    wishes = [NewTopic(name="a", partitions=half), NewTopic(name="b", partitions=half), NewTopic(name="c")]
    for validate_only in (True, False):
        outcomes = create(realm, *wishes, validate_only=validate_only)
        assert [(outcome.code, outcome.topic) for outcome in outcomes] == [(ErrorCode.POLICY_VIOLATION, None)] * 3
    assert realm.image.topics == {}
    outcomes = create(realm, *wishes[:2], validate_only=True)
    assert [outcome.code for outcome in outcomes] == [ErrorCode.NONE] * 2
    assert [len(outcome.topic.partitions) for outcome in outcomes if outcome.topic] == [half] * 2


def test_large_topics_are_planned_grown_and_elected_in_turns_of_the_loop(realm: Realm) -> None:
    realm.start()
    controller = realm.controller
    most = MAX_PARTITIONS_PER_REQUEST
    _, turns = turns_of(realm, controller.topics.create([NewTopic(name="t", partitions=most)], validate_only=True))
    assert turns > 2
    create(realm, NewTopic(name="t"))
    _, turns = turns_of(realm, controller.topics.create_partitions("t", most, None, validate_only=True))
    assert turns > 2
    keys = [("t", number) for number in range(100_000)]
    codes_of, turns = turns_of(realm, controller.leaders.elect(keys, False))
    assert turns > 2
    assert len(codes_of) == len(keys)


def test_many_topics_are_deleted_with_their_logs(realm: Realm) -> None:
    realm.start()
    create(realm, *[NewTopic(name=f"t{number}", partitions=20) for number in range(5)])
    _, turns = turns_of(realm, realm.controller.topics.delete([f"t{number}" for number in range(4)]))
    assert turns > 2
    assert list(realm.image.topics) == ["t4"]
    assert sorted({topic for topic, _ in realm.world.logs.logs}) == ["t4"]
    assert sorted({topic for topic, _ in realm.world.replicas.partitions}) == ["t4"]
    realm.crash()
    realm.start()
    assert list(realm.image.topics) == ["t4"]


def test_the_nodes_of_a_large_topic_are_made_in_steps() -> None:
    """Of 10,000 partitions they took 80 ms in one turn."""
    partitions = [
        PartitionImage(number=number, leader=1, leader_epoch=0, isr=(1,), replicas=(1,)) for number in range(50)
    ]
    topic = TopicImage(name="t", topic_id=b"i" * 16, partitions=partitions, config={})
    made: list[Operation] = []

    def keep() -> Steps[None]:
        made.extend((yield from steps_to_create(topic, 1, False)))

    assert len(list(keep())) == len(partitions)
    assert made == operations_to_create(topic, 1)
