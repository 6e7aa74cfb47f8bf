"""Groups of Java's own consumers, old protocol and new; what is stored of them is read by Kafka's own tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.testing import Broker

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="a JVM takes seconds: once is enough, compiled",
)

SOURCE = Path(__file__).parent / "java" / "Groups.java"
OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
SETTINGS = {
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": 3_000,
}
GROUPS: dict[str, dict[str, Any]] = {"old": {"session.timeout.ms": 1_000}, "new": {"group.protocol": "consumer"}}
EXPECTED = """\
range shared and handed over
cooperative shared and handed over
consumer shared and handed over
classic read 40 committed [10 so far] paused true again 40
consumer read 40 committed [10 so far] paused true again 40
classic static same true others []
consumer static same true others []
migrated up and down
"""


def fill(broker: Broker) -> None:
    broker.create_topic("t", 4)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(40):
        producer.produce("t", f"{number}".encode(), partition=number % 4)
    producer.flush()


@pytest.mark.parametrize("clients", ["clients-3.9.1", "clients-4.3.0"])
def test_consumers(clients: str) -> None:
    jars = need(clients)
    classes = compile_java(SOURCE, jars)
    with Broker(SETTINGS) as broker:
        fill(broker)
        said = run_java("Groups", broker.bootstrap, classpath=f"{classes}:{jars}", options=OPTIONS, timeout_s=150)
    assert said == EXPECTED


@pytest.mark.parametrize(
    ("jars", "tool"),
    [("kafka-3.9.1", "kafka.tools.DumpLogSegments"), ("kafka-4.3.0", "org.apache.kafka.tools.DumpLogSegments")],
)
def test_what_is_stored_is_read_by_kafka(tmp_path: Path, jars: str, tool: str) -> None:
    classpath = need(jars)
    with Broker(SETTINGS, data=str(tmp_path)) as broker:
        broker.create_topic("t", 2)
        for group, settings in GROUPS.items():
            consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, **settings})
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(0.05)
            consumer.commit(offsets=[TopicPartition("t", 1, 5)], asynchronous=False)
            consumer.close()
    log = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    said = run_java(tool, "--offsets-decoder", "--files", str(log), classpath=classpath, options=OPTIONS, timeout_s=60)
    for group in GROUPS:
        assert f'"group":"{group}","topic":"t","partition":1' in said
    kinds = {line.split('"type":"')[1].split('"')[0] for line in said.splitlines() if '"type":"' in line}
    assert kinds == {"1", "2", "3", "5", "6", "7", "8"}
    assert "isvalid: false" not in said
