"""Topics come and go, and grow; a refused change leaves nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ixion.broker.controller.planning import MAX_PARTITIONS, NewTopic
from ixion.broker.controller.topics import TopicOutcome
from ixion.broker.metadata import paths
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.controller.realm import Realm, create, delete
from tests.replica.world import codes

T = TypeVar("T")


def test_a_topic_can_be_used_as_soon_as_it_is_made(realm: Realm) -> None:
    realm.start()
    (outcome,) = create(realm, NewTopic(name="t", partitions=2, config={"retention.ms": "1000"}))
    assert outcome.code == ErrorCode.NONE
    topic = realm.image.topics["t"]
    assert realm.image.ids[topic.topic_id] is topic
    assert [(each.leader, each.leader_epoch, each.isr) for each in topic.partitions] == [(1, 0, (1,))] * 2
    assert codes(realm.world.produce(number=1)) == [ErrorCode.NONE]
    assert realm.folders() == ["t-0", "t-1"]
    assert topic.config == {"retention.ms": "1000"}


def test_nothing_is_made_when_it_is_only_to_be_checked(realm: Realm) -> None:
    realm.start()
    (outcome,) = create(realm, NewTopic(name="t", partitions=2), validate_only=True)
    assert outcome.code == ErrorCode.NONE
    assert outcome.topic is not None
    assert (realm.image.topics, realm.folders(), realm.session.children(paths.TOPICS)) == ({}, [], [])


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (NewTopic(name=""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="ü"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="old"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(name="dot_ted"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="t", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", replication=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", replication=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", config={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", config={"retentoin.ms": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", assignment={0: (2,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignment={1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignment={0: ()}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignment={0: (1, 1)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignment={0: (1,)}, partitions=1), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_refused_topic_does_not_hold_up_the_others(realm: Realm, wish: NewTopic, code: ErrorCode) -> None:
    realm.start()
    create(realm, NewTopic(name="old"), NewTopic(name="dot.ted"))
    refused, made = create(realm, wish, NewTopic(name="good"))
    assert (refused.code, made.code) == (code, ErrorCode.NONE)
    assert refused.message
    assert set(realm.image.topics) == {"old", "dot.ted", "good"}


def test_the_same_name_twice_in_one_request_is_made_once(realm: Realm) -> None:
    realm.start()
    outcomes = create(realm, NewTopic(name="t"), NewTopic(name="t"), NewTopic(name="a.b"), NewTopic(name="a_b"))
    assert [outcome.code for outcome in outcomes] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


def test_of_two_requests_for_the_same_topic_one_is_refused(realm: Realm) -> None:
    realm.start()

    async def both() -> list[list[TopicOutcome]]:
        return await asyncio.gather(*(realm.controller.topics.create([NewTopic(name="t")]) for _ in range(2)))

    assert [outcomes[0].code for outcomes in realm.run(both())] == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]


def test_a_deleted_topic_is_gone_everywhere_and_its_name_is_free(realm: Realm) -> None:
    realm.start()
    told: list[list[str]] = []
    realm.control.on_deleted.append(told.append)
    create(realm, NewTopic(name="t", partitions=2), NewTopic(name="other"))
    before = realm.image.topics["t"].topic_id
    realm.world.produce()
    waiting = realm.world.fetch(1)
    assert delete(realm, "t", "t", "none") == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [result.code for result in waiting] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert told == [["t"]]
    assert realm.session.children(paths.TOPICS) == ["other"]
    assert realm.session.children(paths.DELETE_TOPICS) == []
    assert before not in realm.image.ids
    assert codes(realm.world.produce()) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    create(realm, NewTopic(name="t"))
    assert realm.image.topics["t"].topic_id != before
    (result,) = realm.world.produce()
    assert (result.code, result.first_offset) == (ErrorCode.NONE, 0)


def test_deletion_can_be_forbidden(tmp_path: Path) -> None:
    realm = Realm(tmp_path, {"delete.topic.enable": "false"})
    try:
        realm.start()
        create(realm, NewTopic(name="t"))
        assert delete(realm, "t") == [ErrorCode.TOPIC_DELETION_DISABLED]
        assert "t" in realm.image.topics
    finally:
        realm.close()


def test_partitions_are_added_at_the_end(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t", partitions=2))
    realm.world.produce(number=1)
    realm.run(realm.controller.topics.create_partitions("t", 4, None))
    assert [each.number for each in realm.image.topics["t"].partitions] == [0, 1, 2, 3]
    assert codes(realm.world.produce(number=3)) == [ErrorCode.NONE]
    realm.crash()
    realm.start()
    assert len(realm.image.topics["t"].partitions) == 4
    (result,) = realm.world.fetch(number=1)
    assert len(result.records) > 0


@pytest.mark.parametrize(
    ("name", "count", "assignment", "code"),
    [
        ("none", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("t", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("t", -1, None, ErrorCode.INVALID_PARTITIONS),
        ("t", MAX_PARTITIONS + 1, None, ErrorCode.INVALID_PARTITIONS),
        ("t", 3, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [(1,), (1,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [(7,)], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 3, [()], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_that_cannot_be_added(realm: Realm, name: str, count: int, assignment: Any, code: ErrorCode) -> None:
    realm.start()
    create(realm, NewTopic(name="t", partitions=2))
    with pytest.raises(KafkaError) as refused:
        realm.run(realm.controller.topics.create_partitions(name, count, assignment))
    assert refused.value.code == code
    assert len(realm.image.topics["t"].partitions) == 2


def test_a_controller_that_has_stopped_refuses_with_a_code(realm: Realm) -> None:
    realm.start()
    realm.run(realm.controller.stop())
    with pytest.raises(KafkaError) as refused:
        create(realm, NewTopic(name="late", partitions=1))
    assert refused.value.code == ErrorCode.NOT_CONTROLLER


def test_names_that_collide_are_found_without_a_look_at_every_topic(realm: Realm) -> None:
    realm.start()
    wishes = [NewTopic(name="a.b"), NewTopic(name="a_b"), NewTopic(name="a.b"), NewTopic(name="a-b")]
    collision = ErrorCode.INVALID_TOPIC_EXCEPTION
    expected = [ErrorCode.NONE, collision, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
    assert [outcome.code for outcome in create(realm, *wishes)] == expected


def test_a_topic_created_again_is_not_deleted_by_the_id_of_the_old_one(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    old = realm.image.topics["t"].topic_id

    async def all_at_once() -> list[list[TopicOutcome]]:
        controller = realm.controller
        return list(
            await asyncio.gather(
                controller.topics.delete(["t"], {"t": old}),
                controller.topics.create([NewTopic(name="t")]),
                controller.topics.delete(["t"], {"t": old}),
            )
        )

    told = [outcome.code for (outcome,) in realm.run(all_at_once())]
    assert told == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
    assert realm.image.topics["t"].topic_id != old


def test_a_change_runs_to_its_end_when_its_caller_is_cancelled(realm: Realm) -> None:
    """A client that goes away in the middle must not leave the tree ahead of the image."""
    realm.start()

    async def cancelled_half_way() -> None:
        caller = asyncio.ensure_future(realm.controller.topics.create([NewTopic(name="t", partitions=2)]))
        while realm.session.exists(paths.topic("t")) is None:
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])

    realm.run(cancelled_half_way())
    (again,) = create(realm, NewTopic(name="t"))
    assert again.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert codes(realm.world.produce(number=1)) == [ErrorCode.NONE]
