"""The same by Java's own clients: 3.9, which announces partitions, and 4.3, whose writes add them (KIP-890)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer

from devtools.jvm import compile_java, run_java
from devtools.parts import need
from ixion.testing import Broker
from tests.apis.reading import read_all

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="a JVM takes seconds: once is enough, compiled",
)

SOURCE = Path(__file__).parent / "java" / "Transactions.java"
EXPECTED = """\
committed 30 [0, 2, 4]
copied 30 aborted 1 metadata so far
copies 30 30
zombie ProducerFencedException
after fencing [of the heir]
slow ProducerFencedException
in the end 31
"""


@pytest.mark.parametrize("clients", ["clients-3.9.1", "clients-4.3.0"])
def test_an_application(clients: str) -> None:
    jars = need(clients)
    classes = compile_java(SOURCE, jars)
    with Broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}) as broker:
        broker.create_topic("in")
        broker.create_topic("out")
        said = run_java(
            "Transactions", broker.bootstrap, classpath=f"{classes}:{jars}", options=["-Xmx256m"], timeout_s=120
        )
    assert said == EXPECTED


def test_kafkas_tools() -> None:
    """A copier that aborts at random copies everything once; a hanging transaction is found and ended."""
    jars = need("kafka-4.3.0")
    values = [b"%d" % number for number in range(100)]

    def tool(name: str, *arguments: str) -> str:
        return run_java(f"org.apache.kafka.tools.{name}", *arguments, classpath=jars, options=["-Xmx256m"])

    with Broker() as broker:
        broker.create_topic("in")
        broker.create_topic("out")
        writer = Producer({"bootstrap.servers": broker.bootstrap})
        for value in values:
            writer.produce("in", value, value)
        writer.flush(10)
        copier = "--input-topic in --output-topic out --input-partition 0 --transactional-id copier --consumer-group c"
        rounds = "--transaction-size 10 --max-messages 100 --enable-random-aborts"
        tool("TransactionalMessageCopier", "--broker-list", broker.bootstrap, *copier.split(), *rounds.split())
        assert read_all(broker.bootstrap, "out") == values
        hanging = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "hanging"})
        hanging.init_transactions(10)
        hanging.begin_transaction()
        hanging.produce("out", b"never seen")
        hanging.flush(10)
        command = ("TransactionsCommand", "--bootstrap-server", broker.bootstrap)
        assert "Ongoing" in tool(*command, "describe", "--transactional-id", "hanging")
        tool(*command, "forceTerminateTransaction", "--transactionalId", "hanging")
        assert read_all(broker.bootstrap, "out") == values
