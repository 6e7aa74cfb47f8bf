"""One partition: its leader, its high watermark, its in-sync replicas."""

from __future__ import annotations

import pytest

from ixion.broker.log.prepare import Origin
from ixion.broker.replica.partition import Partition
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.log.support import batch
from tests.replica.world import SELF, World


def append(partition: Partition, *values: bytes, acks: int = 1) -> None:
    partition.append(batch(*(values or (b"v",))), acks, Origin.CLIENT)
    partition.advance_high_watermark()


def test_alone_the_high_watermark_follows_each_append(world: World) -> None:
    partition = world.lead()
    for end in (1, 2, 3):
        append(partition)
        assert partition.log.high_watermark == end


def test_the_high_watermark_is_what_every_in_sync_replica_has(world: World) -> None:
    partition = world.lead(replicas=(1, 2, 3))
    append(partition, b"a", b"b", b"c")
    assert partition.log.high_watermark == 0
    partition.follower_fetched(2, 2, 0)
    assert partition.log.high_watermark == 0  # follower 3 has not fetched yet
    partition.follower_fetched(3, 1, 0)
    assert partition.log.high_watermark == 1
    partition.follower_fetched(3, 3, 0)
    assert partition.log.high_watermark == 2
    assert partition.follower_fetched(2, 3, 0)
    assert partition.log.high_watermark == 3


def test_a_replica_out_of_sync_and_far_behind_holds_up_no_request(world: World) -> None:
    partition = world.lead(replicas=(1, 2, 3), isr=(1, 2))
    append(partition, b"a", b"b")
    partition.follower_fetched(2, 1, 0)
    partition.follower_fetched(3, 0, 0)
    assert world.wanted == []
    partition.follower_fetched(2, 2, 0)
    assert partition.log.high_watermark == 2


def test_a_replica_about_to_join_holds_the_high_watermark_for_itself(world: World) -> None:
    """It had everything a moment ago; going on without it would have to be taken back when it joins."""
    partition = world.lead(replicas=(1, 2), isr=(1,))
    partition.follower_fetched(2, 0, 0)  # everything there is: caught up as of now
    assert world.wanted == [(1, 2)]
    append(partition, b"a")
    assert partition.log.high_watermark == 0
    world.clock.advance(10_001)  # more than the lag that is allowed
    partition.set_isr((1,))  # nobody wrote it down
    assert partition.log.high_watermark == 1


def test_a_replica_whose_joining_is_being_written_down_counts_already(world: World) -> None:
    """It reached the high watermark but not the end: once it is in sync, nothing may be committed without it."""
    partition = world.lead(replicas=(1, 2, 3), isr=(1, 3))
    append(partition, b"a", b"b", b"c")
    partition.follower_fetched(3, 1, 0)
    assert partition.log.high_watermark == 1
    partition.follower_fetched(2, 1, 0)  # has reached the high watermark
    assert world.wanted == [(1, 3, 2)]
    partition.follower_fetched(3, 3, 0)
    assert partition.log.high_watermark == 1
    partition.set_isr((1, 3, 2))
    assert partition.log.high_watermark == 1
    partition.follower_fetched(2, 3, 0)
    assert partition.log.high_watermark == 3


def test_no_follower_joins_the_isr_before_it_has_reached_the_start_of_this_leader(world: World) -> None:
    partition = world.lead(replicas=(1, 2), isr=(1,))
    append(partition, b"a", b"b")
    partition.make_leader(1, (1,), (1, 2))
    assert partition.epoch_start == 2
    partition.follower_fetched(2, 1, 0)
    assert world.wanted == []
    partition.follower_fetched(2, 2, 0)
    assert world.wanted == [(1, 2)]


def test_one_change_of_the_in_sync_replicas_at_a_time(world: World) -> None:
    partition = world.lead(replicas=(1, 2, 3), isr=(1,))
    partition.follower_fetched(2, 0, 0)
    partition.follower_fetched(3, 0, 0)
    assert world.wanted == [(1, 2)]
    partition.set_isr((1, 2))
    partition.follower_fetched(3, 0, 0)
    assert world.wanted == [(1, 2), (1, 2, 3)]


def test_a_follower_that_lags_too_long_leaves_the_isr_and_the_high_watermark_moves_on(world: World) -> None:
    partition = world.lead(replicas=(1, 2, 3))
    append(partition, b"a")
    partition.follower_fetched(2, 1, 0)
    world.clock.advance(10_000)
    partition.shrink_isr()
    assert world.wanted == []
    partition.follower_fetched(2, 1, 0)
    world.clock.advance(1)
    partition.shrink_isr()
    assert world.wanted == [(1, 2)]
    assert partition.log.high_watermark == 0
    assert partition.set_isr((1, 2))
    assert partition.log.high_watermark == 1


def test_a_follower_that_has_everything_never_lags(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    append(partition)
    partition.follower_fetched(2, 1, 0)
    world.clock.advance(1_000_000)
    partition.shrink_isr()
    assert world.wanted == []


def test_a_follower_that_is_always_one_fetch_behind_stays_in_sync(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    for offset in range(20):
        append(partition)
        partition.follower_fetched(2, offset, 0)
        world.clock.advance(4_000)
        partition.shrink_isr()
    assert world.wanted == []


def test_a_new_leader_knows_nothing_of_its_followers(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    append(partition)
    partition.follower_fetched(2, 1, 0)
    assert partition.log.high_watermark == 1
    assert partition.make_leader(1, (1, 2), (1, 2))
    append(partition)
    assert partition.log.high_watermark == 1
    partition.follower_fetched(2, 2, 0)
    assert partition.log.high_watermark == 2


def test_the_same_epoch_again_changes_nothing_but_the_members(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    append(partition)
    partition.follower_fetched(2, 1, 0)
    append(partition)
    assert not partition.make_leader(0, (1, 2), (1, 2))
    partition.follower_fetched(2, 2, 0)
    assert partition.log.high_watermark == 2
    assert partition.epoch_start == 0


def test_a_fetch_of_an_unknown_follower_counts_for_nothing(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    append(partition)
    assert not partition.follower_fetched(9, 1, 0)
    assert partition.log.high_watermark == 0


def test_too_few_in_sync_replicas_refuse_acks_all_only(world: World) -> None:
    world.min_isr = 2
    partition = world.lead(replicas=(1, 2), isr=(1,))
    with pytest.raises(KafkaError) as refused:
        partition.append(batch(b"v"), -1, Origin.CLIENT)
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.end_offset == 0
    append(partition, acks=1)
    assert (partition.log.end_offset, partition.log.high_watermark) == (1, 0)


def test_more_replicas_than_there_are_cannot_be_asked_for(world: World) -> None:
    """min.insync.replicas=2 on a topic with one replica: that one is enough, as it is in Kafka since 3.7."""
    world.min_isr = 2
    partition = world.lead(replicas=(SELF,))
    append(partition, acks=-1)
    assert partition.log.high_watermark == 1
    assert partition.enough_in_sync


def test_a_follower_refuses_to_append(world: World) -> None:
    partition = world.lead()
    partition.make_follower(2, 1, (2, 1), (2, 1))
    with pytest.raises(KafkaError) as refused:
        partition.append(batch(b"v"), 1, Origin.CLIENT)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not partition.advance_high_watermark()


@pytest.mark.parametrize(
    ("known", "code"),
    [
        (-1, ErrorCode.NONE),
        (5, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_leader_epochs_fence(world: World, known: int, code: ErrorCode) -> None:
    assert world.lead(epoch=5).fault(known) == code


def test_a_follower_serves_only_clients_that_do_not_need_the_leader(world: World) -> None:
    partition = world.lead()
    partition.make_follower(2, 1, (2, 1), (2, 1))
    assert partition.fault(-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.fault(1, leader_only=False) == ErrorCode.NONE


def test_the_low_watermark_waits_for_every_follower(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    append(partition, b"a", b"b")
    partition.follower_fetched(2, 2, 0)
    partition.log.raise_log_start(2)
    assert partition.low_watermark == 0
    assert partition.follower_fetched(2, 2, 2)
    assert partition.low_watermark == 2


def test_a_fetch_of_an_earlier_life_of_a_follower_says_nothing_about_this_one(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    append(partition, b"a", b"b")
    partition.follower_fetched(2, 0, 0, broker_epoch=12)  # it came back with an empty disk
    assert not partition.follower_fetched(2, 2, 0, broker_epoch=10)  # held up on its way since before that
    assert partition.log.high_watermark == 0
    assert partition.follower_fetched(2, 2, 0, broker_epoch=12)
    assert partition.log.high_watermark == 2


def test_a_clock_that_is_set_back_keeps_no_silent_follower_in_the_isr(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    partition.follower_fetched(2, 0, 0)
    append(partition)
    world.clock_step_ms = -3_600_000
    world.advance(10_001)
    partition.shrink_isr()
    assert world.wanted == [(1,)]


def test_a_clock_that_is_set_forward_drives_no_follower_out_of_the_isr(world: World) -> None:
    partition = world.lead(replicas=(1, 2))
    partition.follower_fetched(2, 0, 0)
    append(partition)
    world.clock_step_ms = 3_600_000
    world.advance(10)
    partition.shrink_isr()
    assert world.wanted == []
