"""Kafka 4.3's own tools look into transactions and end them; its copier copies everything once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.reading import read_all
from tests.apis.txn_kit import batch, produce
from tests.real_clients.tool_stage import ToolStage
from tests.real_clients.toolbox import ToolBox

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="a JVM takes seconds: once is enough, compiled"
)

SCENARIOS = Path(__file__).parent / "scenarios"
# Without verification an old client can leave a transaction in a log that its coordinator knows nothing of.
SETTINGS = {"broker.id": 1, "transaction.partition.verification.enable": False}
STRANGER = 4_000
# Points in time and what has passed since then: after a timeout in milliseconds, or if it is long.
TIMES = {r"\b\d{13}\b": "TIME", r"(?<=60000 TIME )\d+|(?<=TIME )\d{6,}": "SPAN"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        for topic in ("in", "out", "hung"):
            running.create_topic(topic)
        yield running


def begin(bootstrap: str, name: str) -> Producer:
    """A transaction with one record in "out"."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("out", name.encode(), partition=0)
    assert producer.flush(20) == 0
    return producer


def test_transactions(broker: Broker, box: ToolBox) -> None:
    begin(broker.bootstrap, "done").commit_transaction(20)
    begin(broker.bootstrap, "undone").abort_transaction(20)
    still_open = begin(broker.bootstrap, "open")
    with Raw(broker.bootstrap) as raw:
        assert produce(raw, "stranger", batch(STRANGER, 0), topic="hung", version=11) == "NONE"
    assert read_all(broker.bootstrap, "out") == [b"done"]
    assert read_all(broker.bootstrap, "hung") == []
    ToolStage(box, broker.bootstrap, {}, TIMES).play(SCENARIOS / "transactions.txt")
    assert read_all(broker.bootstrap, "out") == [b"done"]
    with pytest.raises(Exception, match="FENCED"):
        still_open.commit_transaction(20)


def test_the_copier_aborts_at_random_and_copies_everything_once(broker: Broker, box: ToolBox) -> None:
    values = [b"%d" % number for number in range(100)]
    writer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        writer.produce("in", value, value)
    writer.flush(10)
    copier = "--input-topic in --output-topic out --input-partition 0 --transactional-id copier --consumer-group c"
    rounds = "--transaction-size 10 --max-messages 100 --enable-random-aborts"
    given = ("--broker-list", broker.bootstrap, *copier.split(), *rounds.split())
    code, said = box.run("TransactionalMessageCopier", *given)
    assert code == 0, said
    assert read_all(broker.bootstrap, "out") == values
