"""Fetches that wait: the lettered cases of DelayedFetch, and which event wakes which fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Part
from ixion.broker.log.prepare import Origin
from ixion.broker.log.view import Bound
from ixion.broker.replica.delayed_fetch import DelayedFetch
from ixion.broker.replica.fetch import AT_ONCE
from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.language.model.errors import ErrorCode
from tests.log.support import QuickFiles, batch, marker
from tests.replica.world import World, codes, offsets

SIZE = len(batch(b"v"))


def test_what_is_there_is_read_at_once(world: World) -> None:
    world.lead()
    world.produce(b"a", b"b")
    (result,) = world.fetch()
    assert (result.code, offsets(result), result.high_watermark) == (ErrorCode.NONE, [0, 1], 2)
    assert (result.last_stable_offset, result.log_start) == (2, 0)


def test_nothing_there_waits_for_the_next_append(world: World) -> None:
    world.lead()
    over = world.fetch()
    assert over == []
    world.produce()
    assert offsets(over[0]) == [0]
    assert world.replicas.fetch_purgatory.delayed == 0


def test_time_is_up_and_there_is_nothing(world: World) -> None:
    world.lead()
    over = world.fetch(wait_ms=500)
    world.advance(499)
    assert over == []
    world.advance(1)
    assert [(result.code, result.records) for result in over] == [(ErrorCode.NONE, b"")]
    world.produce()
    assert len(over) == 1


@pytest.mark.parametrize("wait_ms", [0, -1])
def test_a_fetch_without_max_wait_is_answered_at_once(world: World, wait_ms: int) -> None:
    world.lead()
    assert len(world.fetch(wait_ms=wait_ms)) == 1


@pytest.mark.parametrize("min_bytes", [0, -5])
def test_a_fetch_of_zero_bytes_is_answered_at_once(world: World, min_bytes: int) -> None:
    world.lead()
    assert len(world.fetch(min_bytes=min_bytes)) == 1


def test_case_f_counts_bytes_over_all_partitions(world: World) -> None:
    world.lead("a")
    world.lead("b")
    wishes = [FetchWish("a", b"", 0, 0, 1 << 20), FetchWish("b", b"", 0, 0, 1 << 20)]
    over = world.fetch_all(wishes, min_bytes=3 * SIZE)
    world.produce(topic="a")
    world.produce(topic="b")
    assert over == []
    world.produce(topic="a")
    assert [offsets(result) for result in over] == [[0, 1], [0]]


def test_case_f_counts_what_was_there_before(world: World) -> None:
    world.lead()
    world.produce()
    over = world.fetch(min_bytes=2 * SIZE)
    assert over == []
    world.produce()
    assert offsets(over[0]) == [0, 1]


def test_case_f_counts_no_more_of_a_partition_than_it_may_give(world: World) -> None:
    world.lead("a")
    world.lead("b")
    wishes = [FetchWish("a", b"", 0, 0, SIZE), FetchWish("b", b"", 0, 0, 1 << 20)]
    over = world.fetch_all(wishes, min_bytes=2 * SIZE)
    for _ in range(5):
        world.produce(topic="a")
    assert over == []
    world.produce(topic="b")
    assert [offsets(result) for result in over] == [[0], [0]]


def test_case_f_a_consumer_counts_up_to_the_high_watermark_only(world: World) -> None:
    """What the followers do not have yet cannot be read, so it is not enough."""
    world.lead(replicas=(1, 2))
    world.produce(acks=1)
    world.follower_fetches(2, 1)
    over = world.fetch(min_bytes=3 * SIZE)
    for _ in range(5):
        world.produce(acks=1)
    assert over == []
    world.follower_fetches(2, 2)
    assert over == []
    world.follower_fetches(2, 3)
    assert offsets(over[0]) == [0, 1, 2]


def test_case_f_the_same_for_one_that_starts_at_the_end(world: World) -> None:
    world.lead(replicas=(1, 2))
    over = world.fetch(min_bytes=2 * SIZE)
    for _ in range(5):
        world.produce(acks=1)
    world.follower_fetches(2, 1)
    assert over == []
    world.follower_fetches(2, 2)
    assert offsets(over[0]) == [0, 1]


def test_followers_are_woken_by_an_append_and_consumers_by_the_high_watermark(world: World) -> None:
    world.lead(replicas=(1, 2, 3))
    follower = world.fetch(replica=2)
    consumer = world.fetch()
    debugger = world.fetch(bound=Bound.END)
    world.produce(acks=1)
    assert (offsets(follower[0]), consumer, offsets(debugger[0])) == ([0], [], [0])
    world.follower_fetches(2, 1)
    assert consumer == []
    world.follower_fetches(3, 1)
    assert offsets(consumer[0]) == [0]


def test_read_committed_is_woken_by_the_last_stable_offset(world: World) -> None:
    world.lead()
    committed = world.fetch(bound=Bound.VISIBLE_STABLE)
    uncommitted = world.fetch()
    world.produce(records=batch(b"v", producer=(7, 0, 0), transactional=True))
    assert offsets(uncommitted[0]) == [0]
    assert committed == []
    world.produce(records=batch(b"w"))
    assert committed == []
    world.replicas.append(1000, -1, Origin.COORDINATOR, [("t", 0, marker(7, 0, commit=True))], lambda _results: None)
    (result,) = committed
    assert (result.last_stable_offset, result.high_watermark) == (3, 3)
    assert offsets(result)[:2] == [0, 1]
    assert result.aborted == []


def test_read_committed_gets_the_aborted_transactions(world: World) -> None:
    world.lead()
    world.produce(records=batch(b"v", producer=(7, 0, 0), transactional=True))
    world.replicas.append(1000, -1, Origin.COORDINATOR, [("t", 0, marker(7, 0, commit=False))], lambda _results: None)
    (result,) = world.fetch(bound=Bound.VISIBLE_STABLE)
    assert [(each.producer_id, each.first_offset) for each in result.aborted or ()] == [(7, 0)]
    (result,) = world.fetch()
    assert result.aborted is None


def test_case_a_no_longer_the_leader(world: World) -> None:
    partition = world.lead()
    over = world.fetch()
    partition.make_follower(2, 1, (2, 1), (1, 2))
    world.replicas.wake_all(partition.key)
    assert [result.code for result in over] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_case_b_no_replica_any_more_for_a_read_that_any_replica_serves(world: World) -> None:
    partition = world.lead()
    partition.make_follower(2, 1, (2, 1), (1, 2))
    over: list[int] = []
    seen = FetchResult(FetchWish("t", b"", 0, 0, 1 << 20))
    operation = DelayedFetch(world.replicas, 500, 1, Bound.END, False, [seen], lambda: over.append(1))
    assert not world.replicas.fetch_purgatory.try_complete_else_watch(operation, operation.keys)
    world.replicas.wake_all(partition.key)
    assert over == []
    world.replicas.stop("t", 0, delete=False)
    assert over == [1]


def test_case_c_the_broker_does_not_know_it(world: World) -> None:
    world.lead()
    over = world.fetch()
    world.replicas.stop("t", 0, delete=True)
    assert [result.code for result in over] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_case_d_the_disk_has_failed(world: World) -> None:
    partition = world.lead()
    over = world.fetch()
    world.replicas.directory_failed(partition.log.directory.path)
    assert [result.code for result in over] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert world.replicas.why_missing("t", 0) == ErrorCode.KAFKA_STORAGE_ERROR


def test_case_e_another_epoch(world: World) -> None:
    world.lead(epoch=3)
    over = world.fetch(epoch=3)
    assert over == []
    world.lead(epoch=4)
    assert [result.code for result in over] == [ErrorCode.FENCED_LEADER_EPOCH]


def test_case_f_truncated_below_the_reader(world: World) -> None:
    partition = world.lead()
    world.produce(b"a", b"b", b"c")
    over = world.fetch(3)
    partition.log.truncate_to(0)
    world.replicas.wake_all(partition.key)
    assert [result.code for result in over] == [ErrorCode.OFFSET_OUT_OF_RANGE]


def test_case_f_deleted_under_the_reader(world: World) -> None:
    partition = world.lead()
    world.produce(b"a", b"b")
    over = world.fetch(0, min_bytes=100_000)
    assert over == []
    world.replicas.delete_records(1000, [("t", 0, 2)], lambda _results: None)
    assert [result.code for result in over] == [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert partition.log.log_start == 2


def test_case_g_enough_over_all_partitions(world: World) -> None:
    world.lead("a")
    world.lead("b")
    wishes = [FetchWish(topic, b"", 0, 0, 1 << 20) for topic in "ab"]
    over = world.fetch_all(wishes, min_bytes=3 * SIZE)
    world.produce(topic="a")
    world.produce(topic="b")
    assert over == []
    world.produce(topic="a")
    assert [offsets(result) for result in over] == [[0, 1], [0]]


def test_case_g_a_partition_counts_no_more_than_its_limit(world: World) -> None:
    world.lead("a")
    world.lead("b")
    wishes = [FetchWish("a", b"", 0, 0, SIZE), FetchWish("b", b"", 0, 0, SIZE)]
    over = world.fetch_all(wishes, min_bytes=2 * SIZE)
    for _ in range(5):
        world.produce(topic="a")
    assert over == []
    world.produce(topic="b")
    assert [offsets(result) for result in over] == [[0], [0]]


def test_case_h_the_log_diverges_while_a_fetch_waits(world: World) -> None:
    """The leader's log is cut back and written again: the end is the same, but the history is another one."""
    partition = world.lead(epoch=1)
    world.produce(b"a")
    world.lead(epoch=2)
    world.produce(b"b")
    over = world.fetch(2, last_epoch=2, min_bytes=10 * SIZE)
    assert over == []
    partition.log.truncate_to(1)
    partition.log.assign_epoch(3, 1)
    partition.log.append_as_leader(bytearray(batch(b"c")), 3)
    partition.log.raise_high_watermark(2)
    world.replicas.wake_all(partition.key)
    assert [(result.diverging_epoch, result.diverging_end) for result in over] == [(1, 1)]


def test_an_append_looks_at_its_own_partition_of_each_fetch_that_waits(world: World) -> None:
    partitions, fetches = 300, 20
    for number in range(partitions):
        world.lead(number=number)
    wishes = [FetchWish("t", b"", number, 0, 1 << 20) for number in range(partitions)]
    waiting = [world.fetch_all(wishes, min_bytes=10 * SIZE) for _ in range(fetches)]
    while world.replicas.fetch_purgatory.delayed < fetches:
        world.settle()
    counters = world.replicas.counters
    before = counters.fetch_checks
    for number in range(9):
        world.produce(number=number)
    assert counters.fetch_checks - before == 9 * fetches
    assert not any(waiting)
    world.produce(number=7)
    while not all(waiting):
        world.settle()
    assert [sum(len(offsets(result)) for result in over) for over in waiting] == [10] * fetches


def test_a_fetch_of_very_many_partitions_lets_the_loop_have_its_turns(world: World) -> None:
    world.lead()
    world.produce()
    wishes = [FetchWish("t", b"", number, 0, 1 << 20) for number in range(100_000)]
    over = world.fetch_all(wishes)
    turns = 0
    while not over:
        turns += 1
        world.loop.run_until_complete(asyncio.sleep(0))
    assert turns > 1
    assert len(over) == len(wishes)
    assert offsets(over[0]) == [0]
    assert {result.code for result in over[1:]} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_diverging_epoch_is_answered_at_once(world: World) -> None:
    """Asked for epoch 2, which this log has never seen: it says where its own last one before that ends."""
    world.lead(epoch=1)
    world.produce(b"a", b"b")
    world.lead(epoch=3)
    world.produce(b"c")
    (result,) = world.fetch(3, last_epoch=2)
    assert (result.code, result.diverging_epoch, result.diverging_end) == (ErrorCode.NONE, 1, 2)
    (result,) = world.fetch(3, last_epoch=1)
    assert (result.diverging_epoch, result.diverging_end) == (1, 2)
    (result,) = world.fetch(2, last_epoch=1)
    assert (result.diverging_epoch, offsets(result)) == (-1, [2])


@pytest.mark.parametrize("replica", [1, 9])
def test_the_answer_to_a_broker_that_is_no_replica_depends_on_the_epoch_it_names(world: World, replica: int) -> None:
    world.lead(epoch=4, replicas=(1, 2))
    world.produce(acks=1)
    (result,) = world.fetch(replica=replica)
    assert (result.code, result.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
    (result,) = world.fetch(replica=replica, epoch=4)
    assert (result.code, result.records) == (ErrorCode.UNKNOWN_LEADER_EPOCH, b"")
    (result,) = world.fetch(replica=replica, epoch=3)
    assert result.code == ErrorCode.FENCED_LEADER_EPOCH


def test_an_error_of_one_partition_is_answered_at_once(world: World) -> None:
    world.lead()
    wishes = [FetchWish("t", b"", 0, 0, 1 << 20), FetchWish("none", b"", 0, 0, 1 << 20)]
    over = world.fetch_all(wishes, min_bytes=1000)
    assert [result.code for result in over] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_offsets_that_are_not_there(world: World, offset: int) -> None:
    world.lead()
    world.produce(b"a", b"b", b"c")
    assert [result.code for result in world.fetch(offset)] == [ErrorCode.OFFSET_OUT_OF_RANGE]


def test_another_topic_of_the_same_name(world: World) -> None:
    world.lead()
    (result,) = world.fetch_all([FetchWish("t", b"x" * 16, 0, 0, 1000)])
    assert result.code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_the_middle_of_a_batch_gives_the_whole_batch(world: World) -> None:
    world.lead()
    world.produce(b"a", b"b", b"c")
    (result,) = world.fetch(1)
    assert offsets(result) == [0, 1, 2]


def test_limits_of_the_request_and_of_each_partition(world: World) -> None:
    world.lead("a")
    world.lead("b")
    for _ in range(5):
        world.produce(topic="a")
        world.produce(topic="b")

    def lengths(max_bytes: int, *each: int) -> list[int]:
        wishes = [FetchWish(topic, b"", 0, 0, size) for topic, size in zip("ab", each, strict=True)]
        return [len(offsets(result)) for result in world.fetch_all(wishes, max_bytes=max_bytes)]

    assert lengths(1 << 20, 2 * SIZE, 3 * SIZE + 1) == [2, 3]
    assert lengths(3 * SIZE, 1 << 20, 1 << 20) == [3, 0]
    assert lengths(4 * SIZE, 3 * SIZE, 3 * SIZE) == [3, 1]
    assert lengths(1, 1, 1) == [1, 0]  # one whole batch, however large
    assert lengths(0, 0, 0) == [1, 0]
    assert lengths(1 << 20, 1, 1 << 20) == [1, 5]


class TestSmallSegments:
    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[World]:
        made = World(tmp_path, LogConfig(segment_bytes=3 * SIZE))
        yield made
        made.close()

    def test_case_f_the_end_is_in_another_segment(self, world: World) -> None:
        """A read gives one segment; there will never be more in this one, so waiting for more is in vain."""
        world.lead()
        world.produce()
        world.produce()
        over = world.fetch(0, min_bytes=1000)
        world.produce()
        assert over == []
        world.produce()
        assert offsets(over[0]) == [0, 1, 2]

    def test_a_reader_at_the_end_of_a_segment_is_not_fooled_by_the_next(self, world: World) -> None:
        world.lead()
        for _ in range(3):
            world.produce()
        over = world.fetch(3, min_bytes=2 * SIZE)
        world.produce()
        assert over == []
        world.produce()
        assert offsets(over[0]) == [3, 4]


def all_read(world: World) -> None:
    """Fetches of very many partitions have had their turns."""
    while world.replicas.fetch_lane.waiting:
        world.settle()


def test_a_fetch_of_very_many_partitions_looks_at_each_once_when_it_begins_to_wait(world: World) -> None:
    """In the lane of such fetches, a partition in a step."""
    many = AT_ONCE + 10
    for number in range(many):
        world.lead(number=number)
    over = world.fetch_all([FetchWish("t", b"", number, 0, 1 << 20, -1, -1, 0) for number in range(many)])
    all_read(world)
    assert (world.replicas.counters.fetch_checks, world.replicas.fetch_purgatory.delayed) == (many, 1)
    world.produce(number=many - 1)
    all_read(world)
    assert [offsets(result) for result in over] == [[]] * (many - 1) + [[0]]
    assert world.replicas.fetch_purgatory.delayed == 0


class Broken(QuickFiles):
    """Raises what nobody expects."""

    def __init__(self) -> None:
        self.broken = False

    def read(self, fd: int, size: int, position: int) -> bytes:
        if self.broken:
            raise RuntimeError("unexpected")
        return super().read(fd, size, position)

    def write(self, fd: int, position: int, parts: list[Part]) -> None:
        if self.broken:
            raise RuntimeError("unexpected")
        super().write(fd, position, parts)


def test_whatever_a_read_raises_after_a_wait_the_fetch_is_answered(tmp_path: Path) -> None:
    files = Broken()
    world = World(tmp_path, files=files)
    try:
        world.lead()
        over = world.fetch(min_bytes=1 << 20, wait_ms=100)
        world.produce()
        files.broken = True
        world.advance(100)
        assert [result.code for result in over] == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert codes(world.produce()) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    finally:
        world.close()
