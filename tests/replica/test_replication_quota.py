"""Throttled replication: replicas that catch up are slowed down, in-sync ones never."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ixion.broker.replica.replication_quota import ReplicationQuota, names_replica
from ixion.language.model.errors import ErrorCode
from tests.replica.nodes import Nodes
from tests.replica.world import SELF, World, offsets

FOLLOWER = SELF + 1


def quota_of(world: World, limit: int = 1_000) -> ReplicationQuota:
    return ReplicationQuota(lambda: limit, world.now_ms, windows=11, window_ms=1_000)


def test_which_replicas_are_named() -> None:
    assert names_replica(["0:1", "3:2"], 3, 2)
    assert not names_replica(["0:1", "3:2"], 3, 1)
    assert not names_replica(["0:1", "13:2"], 3, 2)
    assert names_replica(["*"], 3, 1)
    assert not names_replica([], 3, 1)


def test_a_mean_above_the_limit_is_too_much_until_time_has_passed(world: World) -> None:
    """Over the time since the first bytes, but over one window at least, as Kafka's SimpleRate has it."""
    quota = quota_of(world)
    quota.record(1_000)
    assert not quota.is_exceeded()
    quota.record(3_000)  # there is no credit for the time before
    assert quota.is_exceeded()
    world.advance(3_999)
    assert quota.is_exceeded()
    world.advance(1)
    assert not quota.is_exceeded()
    quota.record(1)
    assert quota.is_exceeded()
    world.advance(12_000)
    assert not quota.is_exceeded()


def test_a_follower_that_catches_up_gets_the_rate(world: World) -> None:
    """Within 5 %, over a minute of virtual time, and no burst in its first seconds."""
    limit = 10_000
    partition = world.lead(replicas=(SELF, FOLLOWER), isr=(SELF,))
    partition.throttled_as_leader = True
    world.replicas.leader_quota = quota_of(world, limit)
    for _ in range(limit * 70 // 900):
        world.produce(b"x" * 1_000, acks=1)
    got = [0]
    offset = 0
    for _ in range(600):
        results = world.fetch(offset, replica=FOLLOWER, wait_ms=0, partition_bytes=1_500)
        for result in results:
            offset += len(offsets(result))
            got.append(got[-1] + len(result.records))
        world.advance(100)
        assert got[-1] <= limit + 1_500 + limit * 0.1 * len(got)
    assert 0.95 * limit * 60 <= got[-1] <= 1.05 * limit * 60


def test_a_leader_above_its_rate_gives_nothing_to_a_follower_that_catches_up(world: World) -> None:
    partition = world.lead(replicas=(SELF, FOLLOWER), isr=(SELF,))
    partition.throttled_as_leader = True
    quota = world.replicas.leader_quota = quota_of(world)
    world.produce(b"x" * 500, acks=1)
    (result,) = world.fetch(replica=FOLLOWER)
    assert offsets(result) == [0]
    assert not quota.is_exceeded(), "what was sent is counted"
    quota.record(20_000)
    over = world.fetch(replica=FOLLOWER, wait_ms=500)
    assert over == [], "it waits: there is nothing for it"
    world.produce(b"more", acks=1)
    assert over == [], "an append does not end the wait"
    assert partition.followers[FOLLOWER].fetched_ms == world.clock.now_ms, "that it came is noted"
    world.advance(500)
    assert [(result.code, result.records) for result in over] == [(ErrorCode.NONE, b"")]
    world.advance(30_000)
    (result,) = world.fetch(replica=FOLLOWER)
    assert offsets(result) == [0, 1]


def test_bytes_to_throttled_followers_are_counted(world: World) -> None:
    partition = world.lead(replicas=(SELF, FOLLOWER), isr=(SELF,))
    quota = world.replicas.leader_quota = quota_of(world, limit=1)
    world.produce(b"x" * 500, acks=1)
    world.fetch(replica=FOLLOWER)
    assert not quota.is_exceeded(), "its topic does not name it"
    partition.throttled_as_leader = True
    world.fetch(replica=FOLLOWER)
    assert quota.is_exceeded()


def test_followers_in_sync_and_consumers_are_never_throttled(world: World) -> None:
    partition = world.lead(replicas=(SELF, FOLLOWER))
    partition.throttled_as_leader = True
    quota = world.replicas.leader_quota = quota_of(world)
    quota.record(1 << 30)
    world.produce(b"a", acks=1)
    (result,) = world.fetch(replica=FOLLOWER)
    assert offsets(result) == [0]
    world.fetch(1, replica=FOLLOWER, wait_ms=0)
    (result,) = world.fetch()
    assert offsets(result) == [0]


def test_a_follower_above_its_rate_leaves_the_partition_out(tmp_path: Path) -> None:
    async def work(nodes: Nodes) -> None:
        await nodes.lead(1, isr=(1, 2))
        copies = nodes.nodes[3]
        for node in nodes.nodes.values():
            node.replicas.follower_quota = ReplicationQuota(
                lambda: 1_000, lambda: nodes.clock.now_ms, windows=11, window_ms=1_000
            )
        await nodes.settle()
        quota = copies.replicas.follower_quota
        assert quota is not None
        nodes.nodes[1].produce(b"a", acks=1)
        copies.partition.throttled_as_follower = True
        assert copies.fetcher is not None
        (followed,) = copies.fetcher._followed.values()
        followed.behind = 5  # as after an answer with a high watermark above its end
        quota.record(1 << 30)
        before = len([source for source, _, _ in nodes.asked if source == 3])
        assert copies.fetcher._ready() == []
        followed.behind = 0
        followed.not_before_s = 0.0
        assert copies.fetcher._ready() == [followed], "it has caught up: acks=all may wait for it"
        followed.behind = 5
        nodes.clock.advance(30_000)
        assert copies.fetcher._ready() == [followed]
        await nodes.settle()
        assert len([source for source, _, _ in nodes.asked if source == 3]) > before
        assert copies.values() == [(0, 0, b"a")]
        assert quota.throttled == 1

    async def bounded() -> None:
        nodes = Nodes(tmp_path, 3, 1)
        try:
            await asyncio.wait_for(work(nodes), 30)
        finally:
            await nodes.close()

    asyncio.run(bounded())
