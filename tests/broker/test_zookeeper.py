"""One broker whose metadata is on a real ZooKeeper: the same steps, the same answers, and its ghosts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from devtools.zookeeper import RealZooKeeper
from ixion.broker.controller.planning import NewTopic
from ixion.broker.log.files import Files
from ixion.broker.log.prepare import Origin
from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import encode_config
from ixion.broker.metadata.notification_node import encode_config_change
from ixion.broker.metadata.zookeeper.session import ZooKeeperSession, open_session
from ixion.broker.replica.results import AppendResult
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.errors import StartupError
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.broker.support import broker_with, run
from tests.log.support import batch
from tests.metadata.engines import end_from_outside

NUMBERS = count()


@pytest.fixture
def connect(zookeeper: RealZooKeeper) -> str:
    return f"{zookeeper.connect}/broker/{next(NUMBERS)}"


def broker_on(connect: str, path: Path, **settings: str) -> Broker:
    given = {"zookeeper_connect": connect, "zookeeper_session_timeout_ms": "2000", "broker_id": "1"}
    given["controlled_shutdown_retry_backoff_ms"] = "50"
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


def test_a_broker_whose_session_expired_registers_again_and_leads(connect: str, tmp_path: Path) -> None:
    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        await make_topic(broker, "t")
        parts = broker.parts
        for _ in range(2):
            session, epoch = parts.session, parts.broker_epoch
            assert isinstance(session, ZooKeeperSession)
            assert parts.renewal is not None
            renewed = parts.renewal.renewed
            end_from_outside(session, connect)
            await until(lambda: parts.renewal is not None and parts.renewal.renewed > renewed)  # noqa: B023
            assert parts.session is not session
            assert parts.broker_epoch > epoch
            assert (await parts.session.get(paths.broker(1))).stat.owner == parts.session.session_id
            assert parts.replicas.partitions["t", 0].leads, "partitions keep serving"
            assert parts.image.controller_id == 1
        await make_topic(broker, "after")
        other = await open_session(connect, 6_000)
        path = paths.config("topics", "t")
        await other.set(path, encode_config({"retention.ms": "77"}))
        await other.create(paths.NEW_CONFIG_CHANGE, encode_config_change("topics/t"), sequential=True)
        await until(lambda: parts.image.topics["t"].config == {"retention.ms": "77"})
        await other.close()
        assert not broker.failed.is_set()
        await broker.stop(drain_ms=100)

    run(work)


def test_settings_that_changed_while_the_session_was_gone_are_followed(connect: str, tmp_path: Path) -> None:
    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        await make_topic(broker, "t")
        parts = broker.parts
        session = parts.session
        assert isinstance(session, ZooKeeperSession)
        end_from_outside(session, connect)  # its loop stands still meanwhile, so it does not know yet
        other = await open_session(connect, 6_000)
        await other.set(paths.config("topics", "t"), encode_config({"retention.ms": "78"}))
        await other.create(paths.NEW_CONFIG_CHANGE, encode_config_change("topics/t"), sequential=True)
        await other.close()
        await until(lambda: parts.image.topics["t"].config == {"retention.ms": "78"})
        await broker.stop(drain_ms=100)

    run(work)


def test_a_broker_whose_id_was_taken_meanwhile_stops(
    connect: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        session = broker.parts.session
        assert isinstance(session, ZooKeeperSession)
        other = await open_session(connect, 6_000)
        await other.delete(paths.broker(1))
        await other.create(paths.broker(1), b"{}", ephemeral=True)
        end_from_outside(session, connect)
        async with asyncio.timeout(60):
            await broker.failed.wait()
        await other.close()
        await broker.stop(drain_ms=100)

    run(work)
    assert "a broker with id 1 is running already" in caplog.text


def test_a_second_broker_joins_and_takes_over_when_the_first_leaves(connect: str, tmp_path: Path) -> None:
    async def work() -> None:
        first = broker_on(connect, tmp_path / "1")
        await first.start()
        await make_topic(first, "t")
        second = broker_on(connect, tmp_path / "2", broker_id="2")
        await second.start()
        with pytest.raises(StartupError, match="a broker with id 1 is running already"):
            await broker_on(connect, tmp_path / "3").start()
        assert await first.parts.session.children("/brokers/ids") == ["1", "2"]
        image = second.parts.image
        await until(lambda: "t" in image.topics)
        assert (image.controller_id, sorted(image.brokers)) == (1, [1, 2])
        with pytest.raises(KafkaError) as refused:
            await make_topic(second, "u")
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        with pytest.raises(KafkaError) as refused:
            await second.parts.controller.configs.change_features(lambda _: {"group.version": 1})
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        await first.stop(drain_ms=100)
        await until(lambda: image.controller_id == 2 and sorted(image.brokers) == [2])
        await until(lambda: image.topics["t"].partitions[0].leader == -1)
        (outcome,) = await second.parts.controller.topics.create([NewTopic(name="u", replication=1)])
        assert outcome.code is ErrorCode.NONE
        assert image.topics["u"].partitions[0].leader == 2
        await second.stop(drain_ms=100)

    run(work)


def test_a_follower_has_what_was_acknowledged_when_its_leader_dies(connect: str, tmp_path: Path) -> None:
    async def work() -> None:
        first = broker_on(connect, tmp_path / "1")
        second = broker_on(connect, tmp_path / "2", broker_id="2")
        await first.start()
        await second.start()
        await until(lambda: len(first.parts.image.brokers) == len(second.parts.image.brokers) == 2)
        wish = NewTopic(name="t", assignment={0: (1, 2)}, config={"min.insync.replicas": "2"})
        await first.parts.controller.topics.create([wish])
        await until(lambda: ("t", 0) in second.parts.replicas.partitions)
        for number in range(20):
            over: list[AppendResult] = []
            entry = ("t", 0, batch(b"%d" % number))
            first.parts.replicas.append(30_000, -1, Origin.CLIENT, [entry], over.extend)
            await until(lambda: bool(over))  # noqa: B023
            assert over[0].code == ErrorCode.NONE
        session = first.parts.session
        assert isinstance(session, ZooKeeperSession)
        session.abandon()  # as kill -9: nobody tells ZooKeeper
        await first.abandon()
        partition = second.parts.replicas.partitions["t", 0]
        await until(lambda: partition.leads)
        assert partition.log.end_offset == 20
        await until(lambda: second.parts.image.controller_id == 2)
        back = broker_on(connect, tmp_path / "1")
        await back.start()
        await until(lambda: set(partition.isr) == {1, 2})
        assert back.parts.replicas.partitions["t", 0].log.end_offset == 20
        await back.stop(drain_ms=100)
        await second.stop(drain_ms=100)

    run(work)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_a_wrong_path_is_one_clear_line_and_no_second_cluster(connect: str, tmp_path: Path) -> None:
    """A broker that adopted its topics there would lead what the other brokers lead."""

    async def work() -> None:
        broker = broker_on(connect, tmp_path / "d")
        await broker.start()
        await make_topic(broker, "t")
        await broker.stop(drain_ms=100)
        strayed = broker_on(f"{connect}/wrong", tmp_path / "d")
        with pytest.raises(StartupError, match=rf"no cluster at zookeeper.connect={connect}/wrong yet"):
            await strayed.start()
        again = broker_on(connect, tmp_path / "d")
        await again.start()
        try:
            assert "t" in again.parts.image.topics
        finally:
            await again.stop(drain_ms=100)

    run(work)


@pytest.mark.parametrize(
    ("connect", "message"),
    [
        ("127.0.0.1:1", "no server accepted a session within 500 ms"),
        ("127.0.0.1:1:2/x", "is not an address"),
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
