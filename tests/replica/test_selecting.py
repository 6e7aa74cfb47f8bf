"""Consumers read from a replica in their own rack (KIP-392)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.broker.metadata.image import BrokerImage, ClusterImage
from ixion.broker.replica.results import FetchWish
from ixion.broker.replica.selecting import RackAwareSelector
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.config.errors import InvalidSettingError
from ixion.config.replica_settings import RACK_AWARE_SELECTOR
from ixion.config.sources import load
from ixion.language.model.errors import ErrorCode
from ixion.testing import Cluster
from tests.replica.world import SELF, World

NEAR, FAR = SELF + 1, SELF + 2
RACKS = {SELF: "a", NEAR: "b", FAR: "b"}


@pytest.fixture
def image() -> ClusterImage:
    made = ClusterImage(cluster_id="c")
    for number, rack in RACKS.items():
        made.brokers[number] = BrokerImage(broker_id=number, epoch=1, endpoints={}, rack=rack)
    return made


def test_the_replica_that_has_most_in_the_rack_is_chosen(world: World, image: ClusterImage) -> None:
    partition = world.lead(replicas=(SELF, NEAR, FAR))
    selector = RackAwareSelector(image)
    world.produce(b"a", b"b", b"c", acks=1)
    partition.follower_fetched(NEAR, 1, 0)
    partition.follower_fetched(FAR, 3, 0)
    assert selector.select(partition, "b", 0) == FAR
    assert selector.select(partition, "b", 3) == FAR
    assert selector.select(partition, "a", 0) == -1, "the leader is near"
    assert selector.select(partition, "c", 0) == -1, "no replica is in that rack"
    partition.set_isr((SELF, NEAR))
    assert selector.select(partition, "b", 0) == NEAR, "one out of sync is not chosen"
    assert selector.select(partition, "b", 2) == -1, "it does not have the offset"
    partition.follower_fetched(NEAR, 3, 2)
    assert selector.select(partition, "b", 1) == -1, "it has no longer what lies there"


def test_a_follower_serves_a_consumer_that_names_a_rack(world: World) -> None:
    world.replicas.follow("t", 0, b"t" * 16, NEAR, 1, (SELF, NEAR), (SELF, NEAR), 0)
    (result,) = world.fetch(wait_ms=0)
    assert result.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    (result,) = world.fetch_all([FetchWish("t", b"", 0, 0, 1 << 20)], wait_ms=0, rack="b")
    assert result.code == ErrorCode.NONE


def test_another_selector_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"replica\.selector\.class is 'com\.example\.Mine'"):
        load(assignments=["replica.selector.class=com.example.Mine"])


@pytest.fixture(scope="module")
def racks() -> Iterator[Cluster]:
    """Broker 1 is in rack a, broker 2 in rack b."""
    with Cluster(2, {"replica.selector.class": RACK_AWARE_SELECTOR, "min.insync.replicas": 1}) as cluster:
        for number, rack in ((1, "a"), (2, "b")):
            cluster.shut_down(number)
            cluster.brokers[number]._settings["broker.rack"] = rack
            cluster.restart(number)
        yield cluster


def test_librdkafka_is_sent_to_the_follower_in_its_rack(racks: Cluster) -> None:
    racks.create_topic("near")
    racks.wait_healthy()
    leader = racks.leader("near")
    other = 3 - leader
    producer = Producer({"bootstrap.servers": racks.bootstrap})
    for number in range(10):
        producer.produce("near", b"%d" % number)
    assert producer.flush(60) == 0

    async def served(real: RealBroker) -> int:
        counters = real.parts.replicas.counters
        return counters.bytes_out - counters.copied_out

    before = racks.brokers[leader].call(served), racks.brokers[other].call(served)
    consumer = Consumer(
        {
            "bootstrap.servers": racks.bootstrap,
            "group.id": "near",
            "client.rack": "b" if other == 2 else "a",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition("near", 0, 0)])
    found: list[bytes | None] = []
    while len(found) < 10:
        found += [message.value() for message in consumer.consume(10 - len(found), timeout=60)]
    assert found == [b"%d" % number for number in range(10)]
    assert racks.brokers[other].call(served) > before[1], "the follower gave the records"
    assert racks.brokers[leader].call(served) == before[0]
    consumer.close()
