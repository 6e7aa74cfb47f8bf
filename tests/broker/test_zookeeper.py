"""One broker whose metadata is on a real ZooKeeper: the same steps, the same answers, and its ghosts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from devtools import parts
from devtools.zookeeper import RealZooKeeper
from ixion.broker.broker import Broker
from ixion.broker.errors import StartupError
from ixion.controller.planning import NewTopic
from ixion.log.files import Files
from ixion.metadata import paths
from ixion.metadata.zookeeper.session import ZooKeeperSession, open_session
from tests.broker.support import broker_with, run
from tests.metadata.engines import end_from_outside

NUMBERS = count()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealZooKeeper]:
    parts.need("zookeeper-3.9.4")
    with RealZooKeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture
def connect(zookeeper: RealZooKeeper) -> str:
    return f"{zookeeper.connect}/broker/{next(NUMBERS)}"


def broker_on(connect: str, path: Path, **settings: str) -> Broker:
    given = {"zookeeper_connect": connect, "zookeeper_session_timeout_ms": "2000", "broker_id": "1"}
    return broker_with(Files(), path, **{**given, **settings})


async def make_topic(broker: Broker, name: str) -> None:
    (outcome,) = await broker.parts.controller.topics.create([NewTopic(name=name, partitions=3)])
    assert outcome.topic is not None, outcome.message


def test_topics_and_settings_are_in_the_tree_and_there_after_a_restart(connect: str, tmp_path: Path) -> None:
    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        await make_topic(broker, "t")
        await broker.parts.controller.configs.alter("topics", "t", lambda _: {"retention.ms": "1234"})
        cluster_id, epoch = broker.parts.cluster_id, broker.parts.broker_epoch
        assert broker.parts.image.topics["t"].config == {"retention.ms": "1234"}
        await broker.stop(drain_ms=100)
        session = await open_session(connect, 6_000)
        assert await session.children(paths.TOPICS) == ["t"]
        assert await session.children("/brokers/ids") == [], "a stop takes the registration along"
        await session.close()
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        assert (broker.parts.cluster_id, broker.parts.image.controller_id) == (cluster_id, 1)
        assert broker.parts.broker_epoch > epoch
        assert broker.parts.image.topics["t"].config == {"retention.ms": "1234"}
        assert len(broker.parts.replicas.partitions) == 3
        await broker.parts.controller.topics.delete(["t"])
        assert await broker.parts.session.children(paths.TOPICS) == []
        assert not (tmp_path / "d" / "metadata.sqlite").exists()
        await broker.stop(drain_ms=100)

    run(work)


def test_a_broker_that_was_killed_waits_for_its_own_ghost(connect: str, tmp_path: Path) -> None:
    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        await make_topic(broker, "t")
        session = broker.parts.session
        assert isinstance(session, ZooKeeperSession)
        session.abandon()  # as kill -9: nobody tells ZooKeeper
        await broker.abandon()
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        assert list(broker.parts.image.topics) == ["t"]
        await broker.stop(drain_ms=100)

    run(work)


def test_an_expired_session_stops_the_broker(connect: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        session = broker.parts.session
        assert isinstance(session, ZooKeeperSession)
        end_from_outside(session, connect)
        await asyncio.wait_for(broker.failed.wait(), 60)
        await broker.stop(drain_ms=100)

    run(work)
    assert "the metadata session expired" in caplog.text


def test_a_second_broker_is_refused_and_the_first_goes_on(connect: str, tmp_path: Path) -> None:
    async def work() -> None:
        first = broker_on(connect, tmp_path / "1")
        await first.start()
        await make_topic(first, "t")
        with pytest.raises(StartupError, match="broker 1 is the controller of this cluster"):
            await broker_on(connect, tmp_path / "2", broker_id="2").start()
        with pytest.raises(StartupError, match="a broker with id 1 is running already"):
            await broker_on(connect, tmp_path / "3").start()
        assert await first.parts.session.children("/brokers/ids") == ["1"]
        assert await first.parts.session.children(paths.TOPICS) == ["t"]
        await first.stop(drain_ms=100)

    run(work)


@pytest.mark.parametrize(
    ("connect", "message"),
    [
        ("127.0.0.1:1", "no server took us in within 500 ms"),
        ("127.0.0.1:1:2/x", "is no address"),
        ("zk:2181//x", "a name is empty"),
    ],
)
def test_a_start_without_zookeeper_is_one_clear_line(connect: str, message: str, tmp_path: Path) -> None:
    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d", zookeeper_connection_timeout_ms="500")
        with pytest.raises(StartupError, match=message):
            await broker.start()
        assert not (tmp_path / "d").exists(), "nothing is left behind"

    run(work)
