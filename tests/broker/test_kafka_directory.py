"""A directory that Apache Kafka wrote, served by ixion as if it had always been its own; and by Kafka again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.test_k65_describe_transactions import describe
from tests.names import drawn
from tests.real_clients.drivers import CODECS, DRIVERS, Message

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="a JVM takes seconds: once is enough, compiled",
)

GROUP, OLD, NEW = (drawn(name) for name in ("g", "old", "new"))
X, Y, OPEN, LATE = (drawn(name) for name in ("x", "y", "open", "late"))
MORE = [drawn("more") for _ in range(12)]
ABORTS = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
CONFLUENT = DRIVERS[0]
STATES = ["CompleteCommit", "CompleteAbort", "Ongoing", "Ongoing"]  # of x, y, open and late
MESSAGES = [Message(b"k%d" % number, b"v" * number, (("n", b"%d" % number),)) for number in range(50)]


def commit(bootstrap: str, topic: str, offset: int, group: str = GROUP, note: str = "", **settings: Any) -> None:
    """As a member, if there are settings to be one with."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **settings})
    if settings:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.05)
    consumer.commit(offsets=[TopicPartition(topic, 0, offset, note)], asynchronous=False)
    consumer.close()


def committed(bootstrap: str, topic: str, group: str = GROUP) -> tuple[int, str | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=20)
    consumer.close()
    return int(found.offset), found.metadata


def begin(bootstrap: str, topic: str, name: str, value: bytes, timeout_ms: int = 60_000) -> Producer:
    """A transaction with one record."""
    settings = {"transactional.id": name, "transaction.timeout.ms": timeout_ms, "log_level": 0}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value, b"k", partition=0, timestamp=Message(None, None).timestamp)
    assert producer.flush(20) == 0
    return producer


def transact(bootstrap: str, topic: str) -> None:
    """One transaction that is kept and one that is not."""
    begin(bootstrap, topic, X, b"kept").commit_transaction(20)
    begin(bootstrap, topic, Y, b"dropped").abort_transaction(20)


def states(bootstrap: str, *names: str) -> list[str]:
    with Raw(bootstrap) as raw:
        return [each.transaction_state for each in describe(raw, *names)]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_there_and_back(tmp_path: Path) -> None:
    need("kafka-3.9.1")
    few = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
    kafka = RealKafka("3.9.1", tmp_path, properties=few)
    with kafka:
        for codec in CODECS:
            CONFLUENT.produce(kafka.bootstrap, f"t-{codec}", MESSAGES, codec=codec)
        transact(kafka.bootstrap, "t-none")
        commit(kafka.bootstrap, "t-lz4", 17)
        for number, group in enumerate(MORE):
            commit(kafka.bootstrap, "t-none", number, group)
    logs = tmp_path / "logs"
    with Broker({ABORTS: 3_600_000}, data=logs) as broker:

        async def look(real: RealBroker) -> tuple[int, str, set[str]]:
            return real.parts.node_id, real.parts.cluster_id, set(real.parts.image.topics)

        node_id, cluster_id, topics = broker.call(look)
        assert (node_id, cluster_id) == (1, kafka.cluster_id)
        assert topics >= {f"t-{codec}" for codec in CODECS}
        for codec in CODECS:
            assert CONFLUENT.read(broker.bootstrap, f"t-{codec}", 0, len(MESSAGES)) == MESSAGES
        assert CONFLUENT.read(broker.bootstrap, "t-none", len(MESSAGES), 1, committed=True)[0].value == b"kept"
        assert committed(broker.bootstrap, "t-lz4") == (17, "")
        assert [committed(broker.bootstrap, "t-none", group)[0] for group in MORE] == list(range(len(MORE)))
        assert states(broker.bootstrap, X, Y) == ["CompleteCommit", "CompleteAbort"]
        assert CONFLUENT.produce(broker.bootstrap, "t-zstd", MESSAGES, codec="gzip") == list(range(50, 100))
        commit(broker.bootstrap, "t-lz4", 23, note="by a stranger")
        commit(broker.bootstrap, "t-lz4", 24, OLD, "by a member", **{"session.timeout.ms": 6_000})
        commit(broker.bootstrap, "t-lz4", 25, NEW, "by a new member", **{"group.protocol": "consumer"})
        transact(broker.bootstrap, "t-gzip")
        begun = begin(broker.bootstrap, "t-gzip", OPEN, b"never seen")
        reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": OLD})
        begun.send_offsets_to_transaction([TopicPartition("t-lz4", 0, 50)], reader.consumer_group_metadata(), 20)
        reader.close()
        late = begin(broker.bootstrap, "t-gzip", LATE, b"never seen", timeout_ms=1_000)
        assert states(broker.bootstrap, X, Y, OPEN, LATE) == STATES
    assert not list(logs.glob("*-stray"))
    both = {"group.coordinator.rebalance.protocols": "classic,consumer", ABORTS: "200"}
    with RealKafka("3.9.1", tmp_path, cluster_id=kafka.cluster_id, properties=both) as kafka:
        assert CONFLUENT.read(kafka.bootstrap, "t-zstd", 0, 100) == MESSAGES * 2
        assert committed(kafka.bootstrap, "t-lz4") == (23, "by a stranger")
        assert [committed(kafka.bootstrap, "t-none", group)[0] for group in MORE] == list(range(len(MORE)))
        assert committed(kafka.bootstrap, "t-lz4", NEW) == (25, "by a new member")
        assert CONFLUENT.produce(kafka.bootstrap, "t-zstd", MESSAGES) == list(range(100, 150))
        assert states(kafka.bootstrap, X, Y, OPEN) == STATES[:3]
        begin(kafka.bootstrap, "t-gzip", OPEN, b"seen").commit_transaction(20)
        until(lambda: states(kafka.bootstrap, OPEN, LATE) == ["CompleteCommit", "CompleteAbort"])
        seen = CONFLUENT.read(kafka.bootstrap, "t-gzip", len(MESSAGES), 2, committed=True)
        assert [each.value for each in seen] == [b"kept", b"seen"]
        assert committed(kafka.bootstrap, "t-lz4", OLD) == (24, "by a member"), "and nothing pending"
    del begun, late
