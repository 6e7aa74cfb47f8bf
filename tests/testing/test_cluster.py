"""`ixion.testing.Cluster`: three brokers of one process, and what can be done to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import OURS_ALONE
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.config.cluster_settings import NUM_PARTITIONS
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.testing import Cluster
from ixion.testing import broker as module
from ixion.testing.member import Member
from ixion.testing.shared_tree import SharedTree


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as made:
        made.create_topic("t")
        yield made


LAGS_SOON: Final = {"replica.lag.time.max.ms": 500, "replica.fetch.wait.max.ms": 100, "replica.fetch.backoff.ms": 20}
PATIENCE: Final = {"socket.timeout.ms": 1_000, "request.timeout.ms": 1_000}  # with a broker that is paused


class Writer:
    """Sends records one by one; each must be acknowledged by acks=all."""

    def __init__(self, cluster: Cluster) -> None:
        self.sent: list[bytes] = []
        settings = {"acks": "all", "linger.ms": 0, "enable.idempotence": True, "retry.backoff.ms": 20}
        addresses = {"bootstrap.servers": cluster.bootstrap, "topic.metadata.refresh.interval.ms": 500}
        self._producer = Producer({**settings, **addresses, "reconnect.backoff.max.ms": 200, **PATIENCE})

    def write(self, count: int = 5) -> None:
        failed: list[object] = []
        for _ in range(count):
            value = b"%d" % len(self.sent)
            self.sent.append(value)
            self._producer.produce(
                "t", value, partition=0, on_delivery=lambda error, _: failed.append(error) if error else None
            )
        assert self._producer.flush(60) == 0
        assert failed == []


def read(cluster: Cluster, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None, f"only {len(found)} of {count} came"
        if message.error() is None:
            found.append(bytes(message.value() or b""))
    consumer.close()
    return found


def test_records_are_on_all_brokers(cluster: Cluster) -> None:
    writer = Writer(cluster)
    writer.write()
    assert read(cluster, 5) == writer.sent
    cluster.wait_healthy()
    assert set(cluster.isr("t")) == {1, 2, 3}
    assert cluster.bootstrap.count(",") == 2
    assert cluster.controller in {1, 2, 3}


def test_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster) -> None:
    writer = Writer(cluster)
    writer.write()
    dead = cluster.leader("t")
    cluster.kill(dead)
    assert cluster.leader("t") != dead
    writer.write()
    assert cluster.bootstrap.count(",") == 1
    cluster.restart(dead)
    cluster.wait_healthy()
    assert dead in cluster.isr("t")
    assert read(cluster, 10) == writer.sent


def test_all_killed_at_once_have_what_was_acknowledged(cluster: Cluster) -> None:
    writer = Writer(cluster)
    writer.write()
    addresses = cluster.bootstrap
    for broker in (1, 2, 3):
        cluster.kill(broker)
    assert cluster.bootstrap == ""
    cluster.restart()
    assert sorted(cluster.bootstrap.split(",")) == sorted(addresses.split(","))
    writer.write()
    assert read(cluster, 10) == writer.sent


def test_a_clean_stop_moves_leaders_first(cluster: Cluster) -> None:
    writer = Writer(cluster)
    writer.write()
    before = cluster.leader("t")
    cluster.shut_down(before)
    assert cluster.leader("t") != before
    assert (Path(cluster.brokers[before]._data or "") / ".kafka_cleanshutdown").exists()
    writer.write()
    cluster.restart()
    cluster.wait_healthy()
    assert read(cluster, 10) == writer.sent


def test_a_paused_leader_returns_as_a_follower(cluster: Cluster) -> None:
    writer = Writer(cluster)
    writer.write()
    paused = cluster.leader("t")
    cluster.pause(paused, expire=True)
    with pytest.raises(RuntimeError, match=f"broker {paused} is paused"):
        cluster.brokers[paused].create_topic("x")
    assert cluster.leader("t") != paused
    writer.write()
    cluster.resume(paused)
    cluster.wait_healthy()
    assert cluster.leader("t") != paused
    assert read(cluster, 10) == writer.sent


def test_a_session_whose_loop_stands_still_expires() -> None:
    """As that of a broker that is paused for longer than its session timeout; the other brokers find out."""
    tree = SharedTree()

    async def register() -> None:
        session = await tree.open_session(1, 50)
        await ensure(session, [paths.BROKERS])
        await session.create(paths.broker(1), ephemeral=True)

    async def live_on() -> None:
        await tree.open_session(2, 50)
        while tree.registered():
            await asyncio.sleep(0.01)

    asyncio.run(register())
    asyncio.run(live_on())
    tree.close()


def test_a_cut_takes_a_follower_out_of_sync() -> None:
    with Cluster(3, LAGS_SOON) as cluster:
        cluster.create_topic("t")
        writer = Writer(cluster)
        writer.write()
        leader = cluster.leader("t")
        # Not the controller: a leader that cannot reach it cannot change the ISR either.
        other = next(broker for broker in (1, 2, 3) if broker not in (leader, cluster.controller))
        cluster.cut(leader, other)
        writer.write()
        cluster.wait(lambda: other not in cluster.isr("t"), "the follower that was cut off leaves the ISR")
        cluster.heal()
        cluster.wait_healthy()
        assert read(cluster, 10) == writer.sent


def test_an_expired_session_is_replaced(cluster: Cluster) -> None:
    writer = Writer(cluster)
    writer.write()
    cluster.expire(cluster.controller)
    writer.write()
    cluster.wait_healthy()
    assert read(cluster, 10) == writer.sent


def test_without_expiry_a_killed_broker_stays_registered(cluster: Cluster) -> None:
    dead = next(broker for broker in (1, 2, 3) if broker not in (cluster.leader("t"), cluster.controller))
    cluster.kill(dead, expire=False)
    real = dict(cluster._reals())[cluster.controller]
    assert dead in real.parts.image.brokers  # its session has seconds left, and the next line ends it
    cluster.expire(dead)
    cluster.wait(lambda: dead not in real.parts.image.brokers, "the controller learns that the broker is gone")


def test_what_is_wrong_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="at least one broker"):
        Cluster(0)
    with pytest.raises(ValueError, match=r"unknown setting num\.partitoins"):
        Cluster(2, {"num.partitoins": 1}).start()
    assert list(tmp_path.iterdir()) == []
    cluster = Cluster(1)
    with pytest.raises(ValueError, match="not running"):
        cluster.kill(1)
    with cluster:
        with pytest.raises(ValueError, match="no broker 2; it has 1"):
            cluster.kill(2)
        with pytest.raises(RuntimeError, match="running already"):
            cluster.start()
        with pytest.raises(LookupError, match="no partition 0"):
            cluster.isr("t")
        with pytest.raises(TimeoutError, match=r"not true within 0\.01 s: a wish"):
            cluster.wait(lambda: False, "a wish", 0.01)
    cluster.stop()
    assert list(tmp_path.iterdir()) == []


def test_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "MEMORY", str(tmp_path))
    monkeypatch.setattr(module, "MEMORY_MIN", 0)
    with Cluster(1, memory=True):
        assert len(os.listdir(tmp_path)) == 1


@pytest.mark.ixion(brokers=2, num_partitions=4)
def test_the_fixture_takes_a_marker(ixion_cluster: Cluster) -> None:
    assert set(ixion_cluster.brokers) == {1, 2}
    assert all(real.parts.config.current[NUM_PARTITIONS] == 4 for _, real in ixion_cluster._reals())


def test_internal_topics_wait_for_as_many_brokers_as_they_have_replicas(caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka: made while fewer brokers live, they would keep too few replicas for good."""
    with Cluster(3) as cluster:
        cluster.create_topic("t")
        dead = next(broker for broker in (1, 2, 3) if broker != cluster.controller)
        cluster.kill(dead)
        live = cluster.brokers[cluster.controller]
        cluster.wait(lambda: len(_image(live).brokers) == 2, "the controller knows that a broker is gone")

        async def find(real: RealBroker) -> list[str]:
            faults = []
            for topic in real.parts.internal_topics.values():
                with pytest.raises(KafkaError) as refused:
                    await topic.ensure()
                assert refused.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
                faults.append(refused.value.message or "")
            return faults

        with caplog.at_level("ERROR", "ixion.broker.startup.internal_topics"):
            faults = live.call(find)
            live.call(find)
        offsets, transactions, shares = faults
        assert offsets == (
            "__consumer_offsets cannot be created: 2 brokers are alive, offsets.topic.replication.factor is 3"
        )
        assert "transaction.state.log.replication.factor is 3" in transactions
        assert "share.coordinator.state.topic.replication.factor is 3" in shares
        lines = [record.message for record in caplog.records if record.name == "ixion.broker.startup.internal_topics"]
        assert lines == faults, "once, although clients ask again and again"
        cluster.restart(dead)
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
        consumer.close()
        assert all(len(each.replicas) == 3 for each in _image(live).topics["__consumer_offsets"].partitions)


def _image(member: Member) -> ClusterImage:
    return member._running()[1].parts.image


def test_every_broker_follows_the_features_of_the_cluster() -> None:
    async def switch_on(real: RealBroker) -> None:
        await real.parts.controller.configs.change_features(lambda levels: {**levels, "transaction.version": 2})

    with Cluster(2) as cluster:
        images = [_image(member) for member in cluster.brokers.values()]
        assert [image.features for image in images] == [OURS_ALONE] * 2, "ixion alone has the new groups"
        cluster.brokers[cluster.controller].call(switch_on)
        both = {**OURS_ALONE, "transaction.version": 2}
        cluster.wait(lambda: all(image.features == both for image in images), "both brokers know it")
        other = next(broker for broker in (1, 2) if broker != cluster.controller)
        cluster.expire(other)
        cluster.wait_healthy()
        cluster.restart(other)
        assert _image(cluster.brokers[other]).features == both


def test_a_client_of_the_new_groups_is_served_by_a_new_cluster() -> None:
    with Cluster(2) as cluster:
        cluster.create_topic("orders")
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        producer.produce("orders", b"one")
        assert producer.flush(60) == 0
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        found = consumer.poll(60)
        consumer.close()
        assert found is not None
        assert (found.error(), found.value()) == (None, b"one")
