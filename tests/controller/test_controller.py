"""Topics come and go; a crash at any point leaves something that the next start can go on from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ixion.controller.planning import MAX_PARTITIONS, MAX_PARTITIONS_PER_REQUEST, NewTopic
from ixion.controller.topic_nodes import operations_to_create
from ixion.controller.topics import TopicOutcome
from ixion.metadata import paths
from ixion.metadata.config_node import read_config
from ixion.metadata.ensure import ensure
from ixion.metadata.image import PartitionImage, TopicImage
from ixion.metadata.node import Delete
from ixion.metadata.topic_node import decode_partition_state
from ixion.model.errors import ErrorCode, KafkaError
from tests.controller.realm import Realm
from tests.metadata.awaited import Awaited, run
from tests.replica.world import codes

T = TypeVar("T")


def create(realm: Realm, *wishes: NewTopic, validate_only: bool = False) -> list[TopicOutcome]:
    return realm.run(realm.controller.topics.create(wishes, validate_only))


def delete(realm: Realm, *names: str) -> list[ErrorCode]:
    return [outcome.code for outcome in realm.run(realm.controller.topics.delete(names))]


def state(realm: Realm, name: str = "t", number: int = 0) -> tuple[int, int]:
    """(leader, leader epoch) as the tree has them."""
    found = decode_partition_state(name, number, realm.session.get(paths.partition_state(name, number)).data)
    return found.leader, found.leader_epoch


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
    realm.controller.topics.on_deleted.append(told.append)
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


def test_a_clean_restart_keeps_the_epochs_and_an_unclean_one_raises_them(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    topic_id = realm.image.topics["t"].topic_id
    realm.world.produce(b"a", b"b")
    assert (realm.image.controller_epoch, state(realm)) == (1, (1, 0))
    realm.crash()
    realm.start(unclean=False)
    assert (realm.image.controller_epoch, state(realm)) == (2, (1, 0))
    realm.crash()
    realm.start(unclean=True)
    assert (realm.image.controller_epoch, state(realm)) == (3, (1, 1))
    partition = realm.world.replicas.partition("t", 0)
    assert partition is not None
    assert (partition.leader_epoch, partition.log.end_offset, partition.log.high_watermark) == (1, 2, 2)
    assert realm.image.topics["t"].topic_id == topic_id
    (result,) = realm.world.fetch(epoch=0)
    assert result.code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_crash_after_the_tree_and_before_the_logs(realm: Realm) -> None:
    """The tree has the topic, so the next start makes what is missing."""
    realm.start()
    topic = TopicImage(
        name="t",
        topic_id=b"i" * 16,
        partitions=[PartitionImage(number=0, leader=1, leader_epoch=0, isr=(1,), replicas=(1,))],
        config={"retention.ms": "77"},
    )
    realm.session.multi(operations_to_create(topic, 1))
    realm.crash()
    realm.start(unclean=True)
    assert realm.image.topics["t"].config == {"retention.ms": "77"}
    assert codes(realm.world.produce()) == [ErrorCode.NONE]


def test_a_crash_after_the_topic_and_before_its_partition_states(realm: Realm) -> None:
    """As Kafka's own controller may leave it: assignment written, leaders not yet chosen."""
    realm.start()
    create(realm, NewTopic(name="t", partitions=2))
    where = paths.partition_state("t", 1)
    realm.session.multi([Delete(where), Delete(paths.partition("t", 1))])
    realm.crash()
    realm.start()
    assert codes(realm.world.produce(number=1)) == [ErrorCode.NONE]
    assert state(realm, "t", 1) == (1, 0)


@pytest.mark.parametrize("logs_gone", [False, True])
def test_a_crash_in_the_middle_of_a_deletion(realm: Realm, logs_gone: bool) -> None:
    realm.start()
    create(realm, NewTopic(name="t", partitions=2), NewTopic(name="kept"))
    realm.world.produce(topic="kept")
    run(ensure(Awaited(realm.session), [paths.delete_topic("t")]))
    if logs_gone:
        for number in (0, 1):
            realm.world.logs.delete("t", number)
    realm.crash()
    realm.start(unclean=True)
    assert list(realm.image.topics) == ["kept"]
    assert realm.session.children(paths.TOPICS) == ["kept"]
    assert realm.session.children(paths.DELETE_TOPICS) == []
    assert realm.session.exists(paths.config("topics", "t")) is None
    assert realm.folders() == ["kept-0", "t-0-delete", "t-1-delete"]
    assert len(realm.world.fetch(topic="kept")[0].records) > 0


def test_logs_of_no_topic_are_set_aside_and_kept(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    realm.world.logs.create("lost", 3)
    realm.world.logs.create("t", 7)
    realm.crash()
    realm.start()
    assert realm.folders() == ["lost-3-stray", "t-0", "t-7-stray"]
    realm.crash()
    realm.start()
    assert realm.folders() == ["lost-3-stray", "t-0", "t-7-stray"]


def test_the_log_of_an_earlier_topic_of_the_same_name_is_set_aside(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    realm.world.produce()
    realm.session.multi([*_forget(realm, "t")])
    realm.session.multi(
        operations_to_create(
            TopicImage(
                name="t",
                topic_id=b"n" * 16,
                partitions=[PartitionImage(number=0, leader=1, leader_epoch=0, isr=(1,), replicas=(1,))],
                config={},
            ),
            1,
        )
    )
    realm.crash()
    realm.start()
    assert realm.folders() == ["t-0", "t-0-stray"]
    (result,) = realm.world.produce()
    assert (result.code, result.first_offset) == (ErrorCode.NONE, 0)


def _forget(realm: Realm, name: str) -> list[Any]:
    from ixion.controller.topic_nodes import operations_to_delete

    return run(operations_to_delete(Awaited(realm.session), name))


def test_a_partition_whose_brokers_are_all_gone_has_no_leader(realm: Realm) -> None:
    realm.start()
    partition = PartitionImage(number=0, leader=2, leader_epoch=6, isr=(2,), replicas=(2, 3))
    topic = TopicImage(name="t", topic_id=b"i" * 16, partitions=[partition], config={})
    realm.session.multi(operations_to_create(topic, 1))
    realm.crash()
    realm.start()
    found = realm.image.topics["t"].partitions[0]
    assert (found.leader, found.leader_epoch, found.isr, found.offline) == (-1, 7, (2,), (2, 3))
    assert codes(realm.world.produce()) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_elections(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    keys = [("t", 0), ("none", 0)]
    for unclean in (False, True):
        assert realm.run(realm.controller.leaders.elect(keys, unclean)) == {
            ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


def test_a_failed_directory_leaves_its_partitions_without_a_leader(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    waiting = realm.world.fetch()
    partition = realm.world.replicas.partition("t", 0)
    assert partition is not None
    partition.log.directory.fail("reading", OSError(5, "Input/output error"))
    realm.run(realm.controller.leaders.directory_failed(partition.log.directory.path))
    found = realm.image.topics["t"].partitions[0]
    assert (found.leader, found.leader_epoch, found.offline) == (-1, 1, (1,))
    assert state(realm) == (-1, 1)
    assert [result.code for result in waiting] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert codes(realm.world.produce()) == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_in_sync_replicas_are_written_down_before_they_count(tmp_path: Path) -> None:
    realm = Realm(tmp_path, brokers=(1, 2))
    try:
        realm.start()
        create(realm, NewTopic(name="t", assignment={0: (1, 2)}))
        partition = realm.world.replicas.partition("t", 0)
        assert partition is not None

        async def later(work: Callable[[], object]) -> None:
            work()
            while partition._isr_wanted is not None:
                await asyncio.sleep(0)

        realm.world.clock.advance(10_001)
        over = realm.world.produce(timeout_ms=100_000)
        realm.run(later(realm.world.replicas.shrink_isr))
        assert (partition.isr, realm.image.topics["t"].partitions[0].isr) == ((1,), (1,))
        assert codes(over) == [ErrorCode.NONE]
        realm.run(later(lambda: realm.world.follower_fetches(2, 1)))
        assert (partition.isr, realm.image.topics["t"].partitions[0].isr) == ((1, 2), (1, 2))
    finally:
        realm.close()


def test_a_controller_that_has_stopped_refuses_with_a_code(realm: Realm) -> None:
    realm.start()
    realm.controller.stop()
    with pytest.raises(KafkaError) as refused:
        create(realm, NewTopic(name="late", partitions=1))
    assert refused.value.code == ErrorCode.NOT_CONTROLLER


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


def test_names_that_collide_are_found_without_a_look_at_every_topic(realm: Realm) -> None:
    realm.start()
    wishes = [NewTopic(name="a.b"), NewTopic(name="a_b"), NewTopic(name="a.b"), NewTopic(name="a-b")]
    collision = ErrorCode.INVALID_TOPIC_EXCEPTION
    expected = [ErrorCode.NONE, collision, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
    assert [outcome.code for outcome in create(realm, *wishes)] == expected


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


def test_a_topic_setting_without_effect_is_warned_about(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    realm.start()
    create(realm, NewTopic(name="t", config={"follower.replication.throttled.replicas": "*"}))
    assert "topic t: set, but without effect in ixion: follower.replication.throttled.replicas" in caplog.text
    caplog.clear()

    def change(current: dict[str, str]) -> dict[str, str]:
        return {**current, "leader.replication.throttled.replicas": "0:1"}

    for validate_only, lines in ((True, 0), (False, 1), (False, 1)):
        realm.run(realm.controller.configs.alter("topics", "t", change, validate_only))
        assert caplog.text.count("without effect") == lines
    assert "follower" not in caplog.text


def test_settings_of_no_topic_give_way_to_those_of_a_new_one(realm: Realm) -> None:
    """Settings can be written to the tree under any name. They must not keep that name from ever being a topic."""
    realm.start()
    realm.run(realm.controller.configs.alter("topics", "t", lambda _: {"retention.ms": "1000"}))
    made = create(realm, NewTopic(name="t", config={"retention.bytes": "7"}), NewTopic(name="u"))
    assert [outcome.code for outcome in made] == [ErrorCode.NONE, ErrorCode.NONE]
    stored = run(read_config(Awaited(realm.session), "topics", "t"))
    assert stored == realm.image.topics["t"].config == {"retention.bytes": "7"}


def test_a_topic_that_was_made_anew_is_not_deleted_by_the_id_of_the_old_one(realm: Realm) -> None:
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


def test_settings_that_contradict_those_of_the_broker_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    realm = Realm(tmp_path, {"log.cleaner.max.compaction.lag.ms": "50"})
    try:
        realm.start()
        (outcome,) = create(realm, NewTopic(name="t", config={"min.compaction.lag.ms": "100"}))
        assert outcome.code == ErrorCode.INVALID_CONFIG
        assert (realm.image.topics, realm.session.children(paths.TOPICS), realm.folders()) == ({}, [], [])
    finally:
        realm.close()


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
