"""Produce with acks=all: its three cases, its timeout, and what flush.messages adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.language.model.errors import ErrorCode
from tests.log.support import batch
from tests.records import forge
from tests.replica.world import World, codes


def test_alone_acks_all_waits_for_nothing(world: World) -> None:
    world.lead()
    (result,) = world.produce(b"a", b"b")
    assert (result.code, result.first_offset, result.required, result.log_start) == (ErrorCode.NONE, 0, 2, 0)
    assert world.replicas.produce_purgatory.snapshot().watched == 0


@pytest.mark.parametrize("acks", [0, 1])
def test_acks_0_and_1_wait_for_no_follower(world: World, acks: int) -> None:
    world.lead(replicas=(1, 2))
    assert codes(world.produce(acks=acks)) == [ErrorCode.NONE]


def test_case_b_it_is_over_when_every_in_sync_replica_has_it(world: World) -> None:
    world.lead(replicas=(1, 2, 3))
    over = world.produce()
    world.follower_fetches(2, 1)
    assert over == []
    world.follower_fetches(3, 0)
    assert over == []
    world.follower_fetches(3, 1)
    assert codes(over) == [ErrorCode.NONE]
    assert over[0].first_offset == 0
    assert world.replicas.produce_purgatory.delayed == 0


def test_each_produce_waits_for_its_own_offset(world: World) -> None:
    world.lead(replicas=(1, 2))
    first, second = world.produce(), world.produce()
    world.follower_fetches(2, 1)
    assert (codes(first), second) == ([ErrorCode.NONE], [])
    world.follower_fetches(2, 2)
    assert codes(second) == [ErrorCode.NONE]


def test_a_partition_that_comes_twice_in_a_request_is_watched_once(world: World) -> None:
    world.lead(replicas=(1, 2))
    world.lead(number=1, replicas=(1, 2))
    data = batch(b"v")
    over = world.produce_all([("t", 0, data), ("t", 1, data), ("t", 0, data)])
    assert world.replicas.produce_purgatory.watched == 2
    world.follower_fetches(2, 1)
    assert over == []
    world.follower_fetches(2, 1, number=1)
    assert over == []
    world.follower_fetches(2, 2)
    assert codes(over) == [ErrorCode.NONE] * 3
    assert [result.first_offset for result in over] == [0, 0, 1]


def test_case_a_it_is_over_when_this_broker_leads_no_more(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    over = world.produce()
    partition.make_follower(2, 1, (2, 1), (1, 2))
    world.replicas.wake_all(partition.key)
    assert codes(over) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_case_a_it_is_over_when_the_topic_is_deleted(world: World) -> None:
    world.lead(replicas=(1, 2))
    over = world.produce()
    world.replicas.stop("t", 0, delete=True)
    assert codes(over) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_case_b_too_few_are_left_after_the_append(world: World) -> None:
    """The high watermark has passed it, but by then min.insync.replicas was no longer met."""
    world.min_isr = 2
    partition = world.lead(replicas=(1, 2, 3))
    over = world.produce()
    partition.set_isr((1,))
    world.follower_fetches(2, 1)
    assert over == []  # below the minimum the high watermark does not move
    partition.log.raise_high_watermark(1)
    world.replicas.high_watermark_moved(partition)
    assert codes(over) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]


def test_a_dropped_follower_completes_the_produces_that_waited_for_it(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    over = world.produce(timeout_ms=100_000)
    world.advance(10_001)
    world.replicas.shrink_isr()
    assert world.wanted == [(1,)]
    assert over == []
    if partition.set_isr((1,)):
        world.replicas.high_watermark_moved(partition)
    assert codes(over) == [ErrorCode.NONE]


def test_time_is_up(world: World) -> None:
    world.lead(replicas=(1, 2))
    over = world.produce(timeout_ms=1000)
    world.advance(999)
    assert over == []
    world.advance(1)
    assert codes(over) == [ErrorCode.REQUEST_TIMED_OUT]
    world.follower_fetches(2, 1)  # too late: it is answered once
    assert len(over) == 1


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_no_time_at_all_is_up_at_once(world: World, timeout_ms: int) -> None:
    world.lead(replicas=(1, 2))
    over = world.produce(timeout_ms=timeout_ms)
    world.advance(1)
    assert codes(over) == [ErrorCode.REQUEST_TIMED_OUT]


def test_the_answer_waits_for_the_last_partition_and_tells_each_its_own_fate(world: World) -> None:
    world.lead("a", replicas=(1, 2))
    world.lead("b", replicas=(1, 2))
    world.lead("alone")
    entries = [("a", 0, batch(b"1")), ("b", 0, batch(b"2")), ("alone", 0, batch(b"3")), ("none", 0, batch(b"4"))]
    entries.append(("a", 0, batch(b"5")[:-1]))
    over = world.produce_all(entries, timeout_ms=1000)
    world.follower_fetches(2, 1, topic="a")
    assert over == []
    world.advance(1000)
    assert codes(over) == [
        ErrorCode.NONE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.CORRUPT_MESSAGE,
    ]
    assert [result.first_offset for result in over] == [0, 0, 0, -1, -1]


def test_errors_of_all_partitions_are_answered_at_once(world: World) -> None:
    world.min_isr = 2
    world.lead(replicas=(1, 2), isr=(1,))
    bad = forge.batch(forge.record(offset_delta=3) + forge.record(1), count=2)
    over = world.produce_all([("t", 0, batch(b"v")), ("none", 0, batch(b"v"))])
    assert codes(over) == [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (result,) = world.produce(records=bad, acks=1)
    assert (result.code, [index for index, _ in result.record_errors]) == (ErrorCode.INVALID_RECORD, [0])


class TestFlushEachMessage:
    """flush.messages=1: nothing is acknowledged, and nothing shown, before it is on the disk."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[World]:
        made = World(tmp_path, LogConfig(flush_messages=1))
        yield made
        made.close()

    @pytest.mark.parametrize("acks", [0, 1, -1])
    def test_case_c_it_is_over_when_it_is_on_the_disk(self, world: World, acks: int) -> None:
        partition = world.lead()
        over = world.produce(acks=acks)
        assert (over, partition.log.high_watermark) == ([], 0)
        assert world.flush() == 1
        assert codes(over) == [ErrorCode.NONE]
        assert partition.log.high_watermark == partition.log.recovery_point == 1

    def test_consumers_see_it_only_then(self, world: World) -> None:
        world.lead()
        consumer = world.fetch()
        world.produce()
        assert consumer == []
        world.flush()
        assert len(consumer[0].records) > 0

    def test_threads_that_come_meanwhile_share_one_more_flush(self, world: World) -> None:
        world.lead()
        first = world.produce()
        world.settle()
        others = [world.produce() for _ in range(5)]
        assert len(world.workers.waiting) == 1
        world.flush()
        assert codes(first) == [ErrorCode.NONE]
        world.flush()
        assert [codes(over) for over in others] == [[ErrorCode.NONE]] * 5
        assert world.workers.waiting == []

    def test_time_can_be_up_before_the_disk_is_done(self, world: World) -> None:
        world.lead()
        over = world.produce(timeout_ms=100)
        world.advance(100)
        assert codes(over) == [ErrorCode.REQUEST_TIMED_OUT]
        assert world.flush() == 1

    def test_a_disk_that_fails_acknowledges_nothing(self, world: World) -> None:
        partition = world.lead()
        over = world.produce()

        def fail(fd: int) -> None:
            raise OSError(5, "Input/output error")

        world.logs.files.sync = fail  # type: ignore[method-assign]
        world.flush()
        assert world.failed == [partition.log.directory.path]
        world.replicas.directory_failed(partition.log.directory.path)
        assert codes(over) == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert partition.log.high_watermark == 0

    def test_what_recovery_found_is_flushed_and_shown_without_waiting_for_the_next_append(self, world: World) -> None:
        """After a crash the recovery point may lie far behind what was acknowledged."""
        partition = world.lead()
        world.produce()
        world.flush()
        partition.log.recovery_point = partition.log.high_watermark = 0  # as the checkpoints of a minute ago say
        world.replicas.stop("t", 0, delete=False)
        partition = world.lead(epoch=1)
        world.flush()
        assert partition.log.high_watermark == 1


def test_flush_after_three_messages_holds_up_only_the_third(tmp_path: Path) -> None:
    world = World(tmp_path, replace(LogConfig(), flush_messages=3))
    try:
        world.lead()
        assert [codes(world.produce()), codes(world.produce())] == [[ErrorCode.NONE]] * 2
        third = world.produce()
        assert third == []
        world.flush()
        assert codes(third) == [ErrorCode.NONE]
    finally:
        world.close()
