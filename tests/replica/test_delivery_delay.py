"""Records of a topic with a fixed delay: never early, never lost, and seen by consumers only when they are due."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from ixion.broker.log.retention import retain
from ixion.broker.log.view import Bound
from ixion.broker.replica import delivery_delay
from ixion.broker.replica.delayed_delete_records import DeletionResult
from ixion.broker.replica.delete_records import HIGH_WATERMARK
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.compression import Codec
from ixion.timer.turns import Steps
from tests.log.support import batch
from tests.replica.world import HeldWorkers, World, offsets

DELAY = 500
FIXED = LogConfig(delivery_delay_ms=DELAY, message_timestamp_type="LogAppendTime")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, FIXED, folders=2)
    yield made
    made.close()


def visible(world: World, bound: Bound = Bound.VISIBLE) -> list[int]:
    (result,) = world.fetch(wait_ms=0, bound=bound)
    assert result.code == ErrorCode.NONE
    return offsets(result)


def set_delay(world: World, delay_ms: int) -> None:
    kind = "LogAppendTime" if delay_ms else "CreateTime"
    world.config = replace(world.config, delivery_delay_ms=delay_ms, message_timestamp_type=kind)
    world.replicas.reconfigure("t")
    world.settle()


def test_a_record_is_seen_when_it_is_due_and_not_a_millisecond_before(world: World) -> None:
    world.lead()
    world.produce(b"a")
    world.advance(200)
    world.produce(b"b", b"c")
    assert visible(world) == []
    world.advance(DELAY - 201)
    assert visible(world) == []
    world.advance(1)
    assert visible(world) == [0]
    world.advance(199)
    assert visible(world) == [0]
    world.advance(1)
    assert visible(world) == [0, 1, 2]


def test_a_fetch_that_waits_is_answered_when_the_next_record_is_due(world: World) -> None:
    world.lead()
    world.produce(b"a")
    waiting = world.fetch(wait_ms=60_000)
    world.advance(DELAY - 1)
    world.produce(b"later")  # wakes nobody
    assert waiting == []
    world.advance(1)
    assert offsets(waiting[0]) == [0]


def test_a_consumer_beyond_what_is_due_waits_and_does_not_spin(world: World) -> None:
    world.lead()
    for _ in range(3):
        world.produce(b"x")
    waiting = world.fetch(2, wait_ms=60_000)
    world.settle()
    assert waiting == []
    world.advance(DELAY)
    assert offsets(waiting[0]) == [2]


def test_the_end_that_consumers_get_is_that_of_the_due_records(world: World) -> None:
    world.lead()
    world.produce(b"a")
    world.advance(300)
    world.produce(b"b")
    world.advance(200)
    (result,) = world.fetch(wait_ms=0)
    assert (result.high_watermark, result.last_stable_offset) == (1, 1)


def test_followers_see_everything_at_once(world: World) -> None:
    world.lead(replicas=(1, 2), isr=(1, 2))
    world.produce(b"a", acks=1)
    (result,) = world.follower_fetches(2, 0)
    assert offsets(result) == [0]
    world.follower_fetches(2, 1)
    (result,) = world.follower_fetches(2, 1)
    assert result.high_watermark == 1, "and the true high watermark"
    assert visible(world) == []


def test_read_committed_sees_the_smaller_of_both_limits(world: World) -> None:
    world.lead()
    world.produce(b"a")
    world.advance(DELAY)
    world.produce(b"b")
    assert visible(world, Bound.VISIBLE_STABLE) == [0]
    assert visible(world, Bound.END) == [0, 1]


def test_another_delay_acts_at_once_in_both_directions(world: World) -> None:
    world.lead()
    world.produce(b"a")
    world.advance(300)
    world.produce(b"b")
    set_delay(world, 250)
    assert visible(world) == [0]
    set_delay(world, 10_000)
    assert visible(world) == []
    waiting = world.fetch(wait_ms=60_000)
    set_delay(world, 0)
    assert offsets(waiting[0]) == [0, 1]
    world.produce(b"c")
    assert visible(world) == [0, 1, 2]
    set_delay(world, DELAY)
    assert visible(world) == []  # those without an append time count from the time their producer gave


def test_after_a_restart_the_rest_of_the_delay_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, FIXED)
    world.lead()
    world.produce(b"a")
    world.advance(400)
    world.produce(b"b")
    world.close()
    again = World(tmp_path, FIXED)
    again.clock.advance(450)
    again.lead()
    again.settle()
    assert visible(again) == []
    again.advance(50)
    assert visible(again) == [0]
    again.advance(400)
    assert visible(again) == [0, 1]
    again.close()
    much_later = World(tmp_path, FIXED)
    much_later.clock.advance(10 * 24 * 60 * 60 * 1000)
    much_later.lead()
    much_later.settle()
    assert visible(much_later) == [0, 1], "what became due while the broker was down is there at once"
    much_later.close()


def test_a_clock_that_is_set_back_hides_nothing_and_hurries_nothing(world: World) -> None:
    world.lead()
    world.produce(b"a")
    world.advance(DELAY)
    world.produce(b"b")
    world.clock_step_ms = -3_600_000
    world.advance(2_000)
    assert visible(world) == [0]
    world.produce(b"c")
    world.advance(3_600_000 + DELAY)
    assert visible(world) == [0, 1, 2]


def test_a_clock_that_is_set_forward_is_followed_within_a_second(world: World) -> None:
    set_delay(world, 3_600_000)
    world.lead()
    world.produce(b"a")
    world.clock_step_ms = 3_600_000
    world.advance(delivery_delay.CLOCK_CHECK_MS)
    assert visible(world) == [0]
    assert world.replicas.delays.clock_jumps == 1


def test_one_task_waits_for_a_partition_whatever_its_backlog(world: World) -> None:
    world.lead()
    before = world.timer.size
    for _ in range(200):
        world.produce(b"x")
        world.advance(1)
    assert world.timer.size <= before + 1
    assert world.replicas.delays.pending() == {("t", 0): 200}
    world.advance(DELAY)
    assert world.replicas.delays.pending() == {("t", 0): 0}
    assert len(visible(world)) == 200


def test_a_partition_that_moves_to_another_directory_takes_its_delay_along(world: World) -> None:
    partition = world.lead()
    world.produce(b"a")
    target = next(each for each in world.logs.directories if each.state is not partition.log.directory)
    world.replicas.moves.begin(partition, target)
    world.replicas.moves.wait()
    world.settle()
    assert partition.log.directory is target.state
    assert visible(world) == []
    world.advance(DELAY)
    assert visible(world) == [0]


def test_a_search_that_fails_is_repeated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.lead()
    world.produce(b"a")

    def fail(_log: Log, _timestamp: int, _bound: Bound, _limits: object = None) -> Steps[None]:
        yield
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "on purpose")

    with monkeypatch.context() as patched:
        patched.setattr("ixion.broker.replica.delivery_delay.search_by_timestamp", fail)
        world.advance(DELAY)
    assert visible(world) == []
    world.advance(delivery_delay.RETRY_MS)
    assert visible(world) == [0]


def test_a_long_batch_is_searched_on_a_worker_thread(world: World) -> None:
    partition = world.lead()
    held = HeldWorkers()
    world.replicas.fair_workers._make_pool = lambda _count, _name: held
    partition.append(batch(bytes(600_000), timestamp=world.now_ms(), codec=Codec.GZIP), 1, Origin.CLIENT)
    world.replicas.delays.appended(partition)
    world.advance(DELAY // 2)
    world.replicas.delays.follow(partition)  # looks now
    world.settle()
    assert len(held.waiting) == 1
    assert partition.log.visible_end == 0
    held.work()
    world.settle()
    world.advance(DELAY)
    while held.work():
        world.settle()
    assert partition.log.visible_end == 1


def test_deleting_all_that_consumers_see_leaves_what_is_not_due(world: World) -> None:
    world.lead()
    world.produce(b"a")
    world.advance(DELAY)
    world.produce(b"b")
    deleted: list[DeletionResult] = []
    world.replicas.delete_records(1_000, [("t", 0, HIGH_WATERMARK)], deleted.extend)
    world.settle()
    assert [result.required for result in deleted] == [1]
    world.advance(DELAY)
    (result,) = world.fetch(1, wait_ms=0)
    assert offsets(result) == [1]


def test_retention_by_size_waits_for_delivery(tmp_path: Path) -> None:
    world = World(tmp_path, replace(FIXED, segment_bytes=200, retention_bytes=0))
    partition = world.lead()
    for _ in range(5):
        world.produce(b"x" * 100)
    retain(partition.log, world.now_ms())
    assert partition.log.log_start == 0
    world.advance(DELAY)
    retain(partition.log, world.now_ms())
    assert partition.log.log_start > 0
    world.close()


def test_a_partition_that_is_led_no_more_waits_for_nothing(world: World) -> None:
    world.lead()
    world.produce(b"a")
    tasks = world.timer.size
    world.replicas.stop("t", 0, delete=False)
    assert world.timer.size == tasks - 1
    world.advance(10 * DELAY)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), min_size=1, max_size=30))
def test_at_any_time_exactly_the_records_that_are_due_are_seen(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]]
) -> None:
    world = World(tmp_path_factory.mktemp("w"), FIXED)
    world.lead()
    appended: list[int] = []  # times
    for pause, produce in steps:
        world.advance(pause)
        if produce:
            world.produce(b"v")
            appended.append(world.now_ms())
        due = [offset for offset, time in enumerate(appended) if time + DELAY <= world.now_ms()]
        assert visible(world) == due
    world.close()
