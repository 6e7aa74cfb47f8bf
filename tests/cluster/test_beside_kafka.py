"""An ixion broker as a member of a cluster of Apache Kafka 3.9.1: follower, leader, killed, stopped and back."""

from __future__ import annotations

from itertools import count

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.cluster.mixed import IXION, KAFKA, PATIENCE_S, Load, Mixed, check_kept, list_topics, wait_until

NUMBERS = count()


@pytest.fixture
def topic(mixed: Mixed) -> str:
    """Partition 0 is led by Apache Kafka, partition 1 by ixion."""
    name = f"t{next(NUMBERS)}"
    mixed.create(name, (KAFKA, IXION), (IXION, KAFKA), min_insync_replicas="1")
    return name


def check_all(mixed: Mixed, load: Load, topic: str) -> None:
    assert not load.failed
    check_kept(load, mixed.records(topic, 2))
    for partition in range(2):
        mixed.await_equal_logs(topic, partition)


def test_each_follows_the_other(mixed: Mixed) -> None:
    mixed.create("both", (KAFKA, IXION), (IXION, KAFKA), min_insync_replicas="2")
    assert mixed.state("both") == {0: (KAFKA, [KAFKA, IXION]), 1: (IXION, [KAFKA, IXION])}
    with Load(mixed.bootstrap, "both", 2) as load:
        load.await_more(2_000)
    check_all(mixed, load, "both")


def test_a_controlled_stop_moves_the_leaders_away(mixed: Mixed, topic: str) -> None:
    with Load(mixed.bootstrap, topic, 2) as load:
        load.await_more(500)
        mixed.ixion.stop()
        mixed.await_leader(topic, KAFKA)
        load.await_more(500)
        mixed.ixion.start()
        mixed.await_isr(topic, 2)
    check_all(mixed, load, topic)


def test_ixion_is_killed_and_comes_back(mixed: Mixed, topic: str) -> None:
    with Load(mixed.bootstrap, topic, 2) as load:
        load.await_more(500)
        mixed.ixion.kill()
        mixed.await_leader(topic, KAFKA)
        load.await_more(500)
        mixed.ixion.start()
        mixed.await_isr(topic, 2)
        load.await_more(500)
    check_all(mixed, load, topic)


def test_kafka_is_killed_and_comes_back(mixed: Mixed, topic: str) -> None:
    with Load(mixed.bootstrap, topic, 2) as load:
        load.await_more(500)
        mixed.kafka.kill()
        mixed.await_leader(topic, IXION)
        load.await_more(500)
        mixed.kafka.start()
        mixed.await_isr(topic, 2)
        load.await_more(500)
    check_all(mixed, load, topic)


def test_a_deleted_topic_is_gone_on_both(mixed: Mixed, topic: str) -> None:
    admin = mixed.admin()
    admin.delete_topics([topic])[topic].result(60)
    for bootstrap in (mixed.kafka.bootstrap, mixed.ixion.bootstrap):
        wait_until(lambda at=bootstrap: topic not in list_topics(at))  # type: ignore[misc]
    wait_until(lambda: not (mixed.ixion.data / "logs" / f"{topic}-0").exists())


def test_delayed_records_are_refused_while_a_replica_is_on_apache_kafka(mixed: Mixed) -> None:
    """And where Apache Kafka leads, ixion follows as ever: there is no sibling to copy."""
    name = "delayed-mixed"
    mixed.create(name, (KAFKA, IXION), (IXION, KAFKA), min_insync_replicas="2")
    said: dict[bytes, str] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        said[bytes(message.value() or b"")] = "" if error is None else error.name()

    patient = Producer({"bootstrap.servers": mixed.bootstrap, "acks": "all"})
    for partition in range(2):
        patient.produce(name, b"plain %d" % partition, partition=partition, on_delivery=delivered)
    assert patient.flush(PATIENCE_S) == 0
    assert set(said.values()) == {""}
    once = Producer({"bootstrap.servers": mixed.bootstrap, "acks": "all", "retries": 0})
    once.produce(name, b"later", partition=1, headers={"x-deliver-after-ms": "1"}, on_delivery=delivered)
    assert once.flush(PATIENCE_S) == 0
    assert said[b"later"] == "NOT_ENOUGH_REPLICAS"
    for partition in range(2):
        mixed.await_equal_logs(name, partition)
    assert {partition: len(isr) for partition, (_, isr) in mixed.state(name).items()} == {0: 2, 1: 2}
