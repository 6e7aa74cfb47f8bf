"""ZooKeeper goes away while brokers run, and comes back: partitions keep serving, and afterwards all is as before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from devtools.parts import need
from devtools.zookeeper import VERSION, RealZooKeeper
from ixion.broker.controller.planning import NewTopic
from ixion.broker.log.files import Files
from ixion.broker.log.prepare import Origin
from ixion.broker.metadata.errors import MetadataError
from ixion.broker.replica.results import AppendResult
from ixion.broker.startup.broker import Broker
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.broker.support import broker_with
from tests.log.support import batch

PATIENCE_S = 60.0


def test_zookeeper_is_away_for_a_while(tmp_path: Path) -> None:
    need(f"zookeeper-{VERSION}")

    async def work(zookeeper: RealZooKeeper) -> None:
        brokers = {number: broker_of(number, zookeeper, tmp_path) for number in (1, 2)}
        for broker in brokers.values():
            await broker.start()
        await until(lambda: all(len(each.parts.image.brokers) == 2 for each in brokers.values()))
        wish = NewTopic(name="t", assignment={0: (1, 2)}, config={"min.insync.replicas": "2"})
        await brokers[1].parts.controller.topics.create([wish])
        await until(lambda: all(("t", 0) in each.parts.replicas.partitions for each in brokers.values()))
        await append(brokers[1])
        zookeeper.kill(0)
        for _ in range(5):
            await append(brokers[1])  # needs no ZooKeeper
        zookeeper.launch(0)
        await asyncio.get_running_loop().run_in_executor(None, zookeeper.wait)
        await until(lambda: all(each.parts.registered_ms is not None for each in brokers.values()))

        made = False
        while not made:  # until a controller is elected and its session is there again
            for broker in brokers.values():
                try:
                    (outcome,) = await broker.parts.controller.topics.create([NewTopic(name="u", replication=2)])
                    made = made or outcome.code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
                except (KafkaError, MetadataError):
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)
        partition = brokers[1].parts.replicas.partitions["t", 0]
        other = brokers[2].parts.replicas.partitions["t", 0]
        await until(lambda: set((partition if partition.leads else other).isr) == {1, 2})
        await append(brokers[1] if partition.leads else brokers[2])
        await until(lambda: partition.log.end_offset == other.log.end_offset == 7)
        for broker in brokers.values():
            assert not broker.failed.is_set()
            await broker.stop(drain_ms=100)

    async def bounded(zookeeper: RealZooKeeper) -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await work(zookeeper)

    with RealZooKeeper(tmp_path / "zookeeper") as zookeeper:
        asyncio.run(bounded(zookeeper))


def broker_of(number: int, zookeeper: RealZooKeeper, path: Path) -> Broker:
    return broker_with(
        Files(),
        path / str(number),
        broker_id=str(number),
        zookeeper_connect=f"{zookeeper.connect}/away",
        zookeeper_session_timeout_ms="6000",
        controlled_shutdown_retry_backoff_ms="50",
        replica_fetch_backoff_ms="50",
    )


async def append(broker: Broker) -> None:
    over: list[AppendResult] = []
    broker.parts.replicas.append(30_000, -1, Origin.CLIENT, [("t", 0, batch(b"v"))], over.extend)
    await until(lambda: bool(over))
    assert over[0].code == ErrorCode.NONE


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)
