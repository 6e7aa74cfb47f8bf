"""The fetchers of a broker: one for each leader and number, none for a broker that leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.fetcher import Fetcher
from ixion.broker.replica.fetchers import FetcherPool
from ixion.broker.replica.partition import Partition
from ixion.config.broker import BrokerConfig
from ixion.config.sources import load
from ixion.language.model.topic_partition import TopicPartition
from tests.replica.nodes import TOPIC_ID, Inline, Node, Nodes


def pool_of(node: Node, fetchers: int) -> FetcherPool:
    config: BrokerConfig = load(assignments=[f"num.replica.fetchers={fetchers}"]).config
    return FetcherPool(
        node.replicas,
        ClusterImage(cluster_id="c"),
        listener="PLAINTEXT",
        broker_epoch=lambda: 1,
        config=lambda: config,
        workers=Inline(),
    )


def follow(node: Node, number: int, leader: int) -> Partition:
    return node.replicas.follow("t", number, TOPIC_ID, leader, 0, (leader,), (leader, node.number), 0)


def test_partitions_are_divided_among_the_fetchers_of_their_leader(tmp_path: Path) -> None:
    async def work() -> None:
        nodes = Nodes(tmp_path, 1)
        pool = pool_of(nodes.nodes[1], 2)
        for number in range(8):
            pool.start(follow(nodes.nodes[1], number, 2 + number // 4))
        assert sorted(pool._fetchers) == [(2, 0), (2, 1), (3, 0), (3, 1)]
        assert len(pool.followed) == 8
        await pool.stop([("t", number) for number in range(8)])
        assert not pool.followed
        assert not pool._fetchers, "a fetcher without partitions ends"
        await pool.close()
        await nodes.close()

    asyncio.run(work())


def test_a_broker_that_leaves_follows_nothing_new(tmp_path: Path) -> None:
    async def work() -> None:
        nodes = Nodes(tmp_path, 1)
        pool = pool_of(nodes.nodes[1], 1)
        pool.start(follow(nodes.nodes[1], 0, 2))
        pool.leave()
        pool.start(follow(nodes.nodes[1], 1, 2))
        assert list(pool.followed) == [("t", 0)]
        await pool.close()
        await nodes.close()

    asyncio.run(work())


def test_a_pool_that_is_closed_starts_no_fetcher(tmp_path: Path) -> None:
    """A request of the controller may be carried out while the broker ends; nobody would end its fetcher."""

    async def work() -> None:
        nodes = Nodes(tmp_path, 1)
        pool = pool_of(nodes.nodes[1], 1)
        pool.start(follow(nodes.nodes[1], 0, 2))
        closing = asyncio.ensure_future(pool.close())
        await asyncio.sleep(0)
        pool.start(follow(nodes.nodes[1], 1, 2))  # while it is being closed
        await closing
        pool.start(follow(nodes.nodes[1], 2, 2))
        assert not pool.followed
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await nodes.close()

    asyncio.run(work())


def test_partitions_of_one_fetcher_are_stopped_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the controller, and because a disk has failed."""

    async def work() -> None:
        nodes = Nodes(tmp_path, 1)
        pool = pool_of(nodes.nodes[1], 1)
        for number in range(2):
            pool.start(follow(nodes.nodes[1], number, 2))
        remove, cut = Fetcher.remove, asyncio.Event()

        async def slow(fetcher: Fetcher, keys: Collection[TopicPartition]) -> None:
            await remove(fetcher, keys)
            await cut.wait()

        with monkeypatch.context() as patched:
            patched.setattr(Fetcher, "remove", slow)
            stops = [asyncio.create_task(pool.stop([("t", number)])) for number in range(2)]
            await asyncio.sleep(0)
            cut.set()
            await asyncio.gather(*stops)
        assert not pool._fetchers
        await pool.close()
        await nodes.close()

    asyncio.run(work())
