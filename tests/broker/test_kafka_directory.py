"""A directory that Apache Kafka wrote, served by ixion as if it had always been its own; and by Kafka again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.broker.broker import Broker as RealBroker
from ixion.testing import Broker
from tests.real_clients.drivers import CODECS, DRIVERS, Message

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="a JVM takes seconds: once is enough, compiled",
)

CONFLUENT = DRIVERS[0]
MESSAGES = [Message(b"k%d" % number, b"v" * number, (("n", b"%d" % number),)) for number in range(50)]


def commit(bootstrap: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
    consumer.close()
    return int(found.offset)


def transact(bootstrap: str, topic: str) -> None:
    """One transaction that is kept and one that is not."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"})
    producer.init_transactions(30)
    for value, keep in ((b"kept", True), (b"dropped", False)):
        producer.begin_transaction()
        producer.produce(topic, value, b"k", partition=0, timestamp=Message(None, None).timestamp)
        producer.flush(20)
        if keep:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)


def test_there_and_back(tmp_path: Path) -> None:
    need("kafka-3.9.1")
    kafka = RealKafka("3.9.1", tmp_path, properties={"offsets.topic.num.partitions": "3"})
    with kafka:
        for codec in CODECS:
            CONFLUENT.produce(kafka.bootstrap, f"t-{codec}", MESSAGES, codec=codec)
        transact(kafka.bootstrap, "t-none")
        commit(kafka.bootstrap, "t-lz4", 17)
    logs = tmp_path / "logs"
    with Broker({"log.retention.ms": -1}, data=logs) as broker:

        async def look(real: RealBroker) -> tuple[int, str, set[str]]:
            return real.parts.node_id, real.parts.cluster_id, set(real.parts.image.topics)

        node_id, cluster_id, topics = broker.call(look)
        assert (node_id, cluster_id) == (1, kafka.cluster_id)
        assert topics >= {f"t-{codec}" for codec in CODECS}
        for codec in CODECS:
            assert CONFLUENT.read(broker.bootstrap, f"t-{codec}", 0, len(MESSAGES)) == MESSAGES
        assert CONFLUENT.read(broker.bootstrap, "t-none", len(MESSAGES), 1, committed=True)[0].value == b"kept"
        assert committed(broker.bootstrap, "t-lz4") == 17
        assert CONFLUENT.produce(broker.bootstrap, "t-zstd", MESSAGES, codec="gzip") == list(range(50, 100))
        commit(broker.bootstrap, "t-lz4", 23)
    assert not list(logs.glob("*-stray"))
    with RealKafka("3.9.1", tmp_path, cluster_id=kafka.cluster_id) as kafka:
        assert CONFLUENT.read(kafka.bootstrap, "t-zstd", 0, 100) == MESSAGES * 2
        assert committed(kafka.bootstrap, "t-lz4") == 23
        assert CONFLUENT.produce(kafka.bootstrap, "t-zstd", MESSAGES) == list(range(100, 150))
