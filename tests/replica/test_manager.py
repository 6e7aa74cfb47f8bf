"""Deleting records, electing leaders, losing a disk, and being told of leadership."""

from __future__ import annotations

from pathlib import Path

from ixion.broker.log.config import LogConfig
from ixion.broker.replica.delayed_delete_records import DeletionResult
from ixion.broker.replica.delayed_elect_leader import DelayedElectLeader
from ixion.broker.replica.delete_records import HIGH_WATERMARK
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from tests.replica.world import World, codes


def delete(world: World, *offsets: tuple[str, int, int], timeout_ms: int = 1000) -> list[DeletionResult]:
    over: list[DeletionResult] = []
    world.replicas.delete_records(timeout_ms, offsets, over.extend)
    world.settle()  # it takes several turns of the loop if the machine is busy
    return over


def test_alone_records_are_deleted_at_once(world: World) -> None:
    world.lead()
    world.produce(b"a", b"b", b"c")
    (result,) = delete(world, ("t", 0, 2))
    assert (result.code, result.low_watermark) == (ErrorCode.NONE, 2)
    (result,) = delete(world, ("t", 0, HIGH_WATERMARK))
    assert (result.code, result.low_watermark) == (ErrorCode.NONE, 3)
    (result,) = delete(world, ("t", 0, 1))  # long gone
    assert (result.code, result.low_watermark) == (ErrorCode.NONE, 3)


def test_deletion_waits_for_the_log_start_of_every_follower(world: World) -> None:
    world.lead(replicas=(1, 2))
    world.produce(b"a", b"b", acks=1)
    world.follower_fetches(2, 2)
    over = delete(world, ("t", 0, 2))
    assert over == []
    world.follower_fetches(2, 2, log_start=1)
    assert over == []
    world.follower_fetches(2, 2, log_start=2)
    assert [(result.code, result.low_watermark) for result in over] == [(ErrorCode.NONE, 2)]


def test_deletion_has_its_time_too(world: World) -> None:
    world.lead(replicas=(1, 2))
    world.produce(acks=1)
    world.follower_fetches(2, 1)
    over = delete(world, ("t", 0, 1), timeout_ms=100)
    world.advance(100)
    assert [result.code for result in over] == [ErrorCode.REQUEST_TIMED_OUT]


def test_deletion_ends_when_this_broker_leads_no_more(world: World) -> None:
    world.lead(replicas=(1, 2))
    world.produce(acks=1)
    world.follower_fetches(2, 1)
    over = delete(world, ("t", 0, 1))
    world.replicas.stop("t", 0, delete=False)
    assert [result.code for result in over] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_deletions_that_cannot_be(world: World) -> None:
    world.lead()
    world.produce(b"a")
    over = delete(world, ("t", 0, 2), ("t", 0, -2), ("none", 0, 0))
    assert [result.code for result in over] == [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_nothing_is_deleted_from_a_compacted_topic(tmp_path: Path) -> None:
    world = World(tmp_path, LogConfig(cleanup_policy=frozenset({"compact"})))
    try:
        world.lead()
        world.produce(b"a")
        (result,) = delete(world, ("t", 0, 1))
        assert result.code == ErrorCode.POLICY_VIOLATION
    finally:
        world.close()


def test_an_election_waits_until_its_leaders_are_seen(world: World) -> None:
    leaders: dict[TopicPartition, int] = {("a", 0): 1, ("b", 0): 1}
    over: list[frozenset[TopicPartition]] = []

    def leader_of(topic: str, number: int) -> int:
        return leaders[topic, number]

    def elect(timeout_ms: int) -> None:
        operation = DelayedElectLeader(timeout_ms, {("a", 0): 2, ("b", 0): 3}, leader_of, over.append)
        world.replicas.elect_leader_purgatory.try_complete_else_watch(operation, [("a", 0), ("b", 0)])

    elect(1000)
    leaders["a", 0] = 2
    world.replicas.wake_all(("a", 0))
    assert over == []
    leaders["b", 0] = 3
    world.replicas.wake_all(("b", 0))
    assert over == [frozenset()]
    leaders["b", 0] = 1
    elect(1000)
    world.advance(1000)
    assert over == [frozenset(), frozenset({("b", 0)})]


def test_a_failed_directory_wakes_its_waiters_and_spares_the_others(tmp_path: Path) -> None:
    world = World(tmp_path, folders=2)
    try:
        lost, kept = world.lead("lost", replicas=(1, 2)), world.lead("kept", replicas=(1, 2))
        assert lost.log.directory.path != kept.log.directory.path
        world.produce(topic="lost", acks=1)
        world.follower_fetches(2, 1, topic="lost")
        produces = [world.produce(topic=topic) for topic in ("lost", "kept")]
        fetches = [world.fetch(offset, topic=topic) for topic, offset in (("lost", 1), ("kept", 0))]
        deletion = delete(world, ("lost", 0, 1))
        lost.log.directory.fail("reading", OSError(5, "Input/output error"))
        gone = world.replicas.directory_failed(lost.log.directory.path)
        assert gone == [("lost", 0)]
        assert [codes(over) for over in produces] == [[ErrorCode.KAFKA_STORAGE_ERROR], []]
        assert [[result.code for result in over] for over in fetches] == [[ErrorCode.KAFKA_STORAGE_ERROR], []]
        assert [result.code for result in deletion] == [ErrorCode.KAFKA_STORAGE_ERROR]
        (result,) = world.produce(topic="lost")
        assert result.code == ErrorCode.KAFKA_STORAGE_ERROR
        world.follower_fetches(2, 1, topic="kept")
        assert codes(produces[1]) == [ErrorCode.NONE]
        assert len(fetches[1]) == 1
    finally:
        world.close()


def test_listeners_hear_once_of_each_epoch_and_of_the_end(world: World) -> None:
    heard: list[tuple[str, int, int]] = []
    world.replicas.on_leadership.append(lambda topic, number, epoch: heard.append((topic, number, epoch)))
    world.lead(epoch=4)
    world.lead(epoch=4)
    world.lead(epoch=5)
    world.replicas.stop("t", 0, delete=False)
    world.replicas.stop("t", 0, delete=False)
    assert heard == [("t", 0, 4), ("t", 0, 5), ("t", 0, -1)]


def test_settings_that_change_reach_the_partition(world: World) -> None:
    partition = world.lead(replicas=(1, 2), isr=(1,))
    assert codes(world.produce(acks=1)) == [ErrorCode.NONE]
    world.min_isr = 2
    world.replicas.reconfigure("t")
    assert codes(world.produce()) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert partition.min_isr == 2


def test_settings_that_all_topics_share_are_looked_up_once_for_each(world: World) -> None:
    partitions = [world.lead(topic, number) for topic in ("a", "b", "c") for number in range(4)]
    world.config = LogConfig(max_message_bytes=100)
    world.min_isr = 2
    asked: list[str] = []

    def config_of(topic: str) -> LogConfig:
        asked.append(topic)
        return world.config

    world.logs.config_of = config_of
    steps = sum(1 for _ in world.replicas.reconfigure_all())
    assert asked == ["a", "b", "c"]
    assert steps == 2 * len(asked)
    assert {partition.min_isr for partition in partitions} == {2}
    assert {partition.log.config for partition in partitions} == {world.config}
