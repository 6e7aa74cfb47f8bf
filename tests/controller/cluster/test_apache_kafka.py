"""ixion as the controller of Apache Kafka 3.9.1 brokers: they obey it, and their logs have no word of complaint.

ixion (broker 1) is started first, so it is the controller; brokers 2 and 3 are Apache Kafka's. The tests of this file
share them and go on from each other.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from devtools import parts
from devtools.jvm import run_java
from devtools.zookeeper import RealZooKeeper
from devtools.zookeeper_kafka import ZooKeeperKafka
from ixion.broker.controller.cluster.controller import ClusterController
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing import Broker

State = dict[int, tuple[int, list[int]]]  # partition -> leader, ISR
QUIET = {"log_level": 2}
SETTINGS = {
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "250",
    "auto.leader.rebalance.enable": "false",
}
# Fetchers lose their leader when it stops, and learn of a deletion a moment late; with any controller.
EXPECTED = re.compile(r"\[ReplicaFetcher |^\t?at |^java\.\S*Exception|UNKNOWN_TOPIC_ID|^\s*$|RemoteLeaderEnd")


@dataclass
class Mixed:
    ixion: Broker
    kafkas: dict[int, ZooKeeperKafka]
    sent: int = 0

    @property
    def bootstrap(self) -> str:
        return ",".join(kafka.bootstrap for kafka in self.kafkas.values())

    def admin(self, broker: int = 0) -> AdminClient:
        where = self.kafkas[broker].bootstrap if broker else self.bootstrap
        return AdminClient({"bootstrap.servers": where, **QUIET})

    def states(self, topic: str, broker: int) -> State:
        """As the metadata of one broker shows them."""
        found = self.admin(broker).list_topics(timeout=10).topics.get(topic)
        if found is None:
            return {}
        return {each.id: (each.leader, sorted(each.isrs)) for each in found.partitions.values()}

    def until(self, topic: str, broker: int, expected: State) -> None:
        until(lambda: self.states(topic, broker), expected)

    def leader_epoch(self, topic: str, partition: int) -> int:
        """As the controller has it."""

        async def look(broker: RealBroker) -> int:
            controller = broker.parts.controller
            assert isinstance(controller, ClusterController)
            return controller.active().cluster.leaderships[topic, partition].leader_epoch

        return self.ixion.call(look)

    def produce(self, topic: str, count: int = 20) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, **QUIET})
        for number in range(self.sent, self.sent + count):
            producer.produce(topic, str(number), partition=number % 2)
        assert producer.flush(30) == 0
        self.sent += count

    def consume(self, topic: str) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "none", **QUIET})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
        found: list[int] = []
        end = time.monotonic() + 30
        while len(found) < self.sent and time.monotonic() < end:
            for message in consumer.consume(100, 1.0):
                assert message.error() is None
                found.append(int(message.value() or b""))
        consumer.close()
        return sorted(found)

    def complaints(self) -> list[str]:
        lines = [line for kafka in self.kafkas.values() for line in kafka.output().splitlines()]
        return [line for line in lines if " ERROR " in line or not EXPECTED.search(line)]


def until(look: Callable[[], object], expected: object) -> None:
    end = time.monotonic() + 60
    while (found := look()) != expected:
        assert time.monotonic() < end, f"{found}, not {expected}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def mixed(zookeeper: RealZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    if os.environ.get("IXION_EXPECT") == "interpreted":
        pytest.skip("a broker of Apache Kafka: once is enough, compiled")
    parts.need("kafka-3.9.1")
    home = tmp_path_factory.mktemp("mixed")
    connect = f"{zookeeper.connect}/mixed"
    settings = {"zookeeper.connect": connect, "broker.id": 1, "auto.leader.rebalance.enable": False}
    with ExitStack() as stack:
        ixion = stack.enter_context(Broker(settings))
        kafkas = {n: ZooKeeperKafka(n, connect, home / str(n), properties=SETTINGS) for n in (2, 3)}
        for kafka in kafkas.values():
            stack.callback(kafka.kill)
            kafka.begin()
        for kafka in kafkas.values():
            kafka.wait()
        yield Mixed(ixion, kafkas)


def test_topics_are_created_and_used(mixed: Mixed) -> None:
    admin = mixed.admin()
    until(lambda: sorted(admin.list_topics(timeout=10).brokers), [1, 2, 3])
    assert admin.list_topics(timeout=10).controller_id == 1
    # Made here, so that no partition of it is on ixion, which leaves at the end.
    offsets = NewTopic("__consumer_offsets", 3, replica_assignment=[[2, 3], [3, 2], [2, 3]])
    admin.create_topics([offsets])["__consumer_offsets"].result()
    admin.create_topics([NewTopic("t", 2, replica_assignment=[[2, 3], [3, 2]])])["t"].result()
    for broker in (2, 3):
        mixed.until("t", broker, {0: (2, [2, 3]), 1: (3, [2, 3])})
    mixed.produce("t")
    assert mixed.consume("t") == list(range(mixed.sent))


def test_a_paused_follower_leaves_the_isr_and_comes_back_by_alter_partition(mixed: Mixed) -> None:
    before = mixed.leader_epoch("t", 0)
    mixed.kafkas[3].pause()
    try:
        producer = Producer({"bootstrap.servers": mixed.kafkas[2].bootstrap, "acks": 1, **QUIET})
        producer.produce("t", str(mixed.sent), partition=0)  # or the follower would have everything
        mixed.sent += 1
        assert producer.flush(30) == 0
        until(lambda: mixed.states("t", 2)[0], (2, [2]))
    finally:
        mixed.kafkas[3].resume()
    until(lambda: mixed.states("t", 2)[0], (2, [2, 3]))
    assert mixed.leader_epoch("t", 0) == before, "the leader asked for it; the controller has elected nobody"


def test_a_killed_leader_is_replaced_and_comes_back(mixed: Mixed) -> None:
    mixed.kafkas[3].kill()
    mixed.until("t", 2, {0: (2, [2]), 1: (2, [2])})
    mixed.produce("t")
    mixed.kafkas[3].start()
    mixed.until("t", 2, {0: (2, [2, 3]), 1: (2, [2, 3])})
    admin = mixed.admin()
    elected = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("t", 1)]).result()
    assert list(elected.values()) == [None]
    for broker in (2, 3):
        mixed.until("t", broker, {0: (2, [2, 3]), 1: (3, [2, 3])})
    mixed.produce("t")
    assert mixed.consume("t") == list(range(mixed.sent))


def test_a_controlled_shutdown_moves_leaders_before_the_broker_stops(mixed: Mixed) -> None:
    mixed.kafkas[2].stop()
    mixed.until("t", 3, {0: (3, [3]), 1: (3, [3])})
    mixed.produce("t")
    mixed.kafkas[2].start()
    mixed.until("t", 3, {0: (3, [2, 3]), 1: (3, [2, 3])})
    assert mixed.consume("t") == list(range(mixed.sent))


def test_partitions_are_added_and_topics_deleted(mixed: Mixed) -> None:
    admin = mixed.admin()
    admin.create_topics([NewTopic("d", 1, replica_assignment=[[2, 3]])])["d"].result()
    admin.create_partitions([NewPartitions("d", 2, replica_assignment=[[3, 2]])])["d"].result()
    mixed.until("d", 2, {0: (2, [2, 3]), 1: (3, [2, 3])})
    admin.delete_topics(["d"])["d"].result()
    for broker, kafka in mixed.kafkas.items():
        mixed.until("d", broker, {})
        logs = kafka.data_dir / "logs"
        until(lambda logs=logs: [path.name for path in logs.glob("d-?")], [])  # type: ignore[misc]


def test_kafkas_own_tool_moves_a_leader_to_ixion(mixed: Mixed, tmp_path: Path) -> None:
    admin = mixed.admin()
    admin.create_topics([NewTopic("m", 1, replica_assignment=[[2, 3]])])["m"].result()
    mixed.until("m", 2, {0: (2, [2, 3])})
    plan = tmp_path / "plan.json"
    plan.write_text('{"version":1,"partitions":[{"topic":"m","partition":0,"replicas":[1,3]}]}')
    assert "Successfully started partition reassignment for m-0" in reassign(mixed, plan, "--execute")
    for broker in (2, 3):
        mixed.until("m", broker, {0: (1, [1, 3])})
    assert "Reassignment of partition m-0 is completed" in reassign(mixed, plan, "--verify")
    until(lambda: list((mixed.kafkas[2].data_dir / "logs").glob("m-0")), [])
    admin.delete_topics(["m"])["m"].result()
    mixed.until("m", 3, {})


def reassign(mixed: Mixed, plan: Path, action: str) -> str:
    return run_java(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        *("--bootstrap-server", mixed.bootstrap, "--reassignment-json-file", str(plan), action),
        classpath=parts.need("kafka-3.9.1"),
    )


def test_the_brokers_have_nothing_to_complain_about(mixed: Mixed) -> None:
    assert mixed.complaints() == []


def test_apache_kafka_goes_on_as_the_controller_when_ixion_leaves(mixed: Mixed) -> None:
    mixed.ixion.stop()
    admin = mixed.admin(2)
    until(lambda: sorted(admin.list_topics(timeout=10).brokers), [2, 3])
    until(lambda: admin.list_topics(timeout=10).controller_id in (2, 3), True)
    mixed.until("t", 2, {0: (3, [2, 3]), 1: (3, [2, 3])})
    admin.create_topics([NewTopic("after", 1, 2)])["after"].result()
    until(lambda: len(mixed.states("after", 3)), 1)
    mixed.produce("t")
    assert mixed.consume("t") == list(range(mixed.sent))
    assert [line for line in mixed.complaints() if " ERROR " in line] == []
