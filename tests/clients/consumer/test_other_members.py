"""Our consumer and librdkafka's in one group, on ixion and on Apache Kafka: each partition has one reader, whichever of
them leads the group. Apache Kafka with the compiled package only: a JVM takes a while."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ixion.clients import Consumer, TopicPartition
from ixion.testing import Broker
from tests.clients.consumer.test_consumer import hurry
from tests.servers import ApacheKafka

KAFKA = "3.9.1"
PARTITIONS = 4


@pytest.fixture(scope="module")
def our_own() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def real_kafka(apache_kafka: ApacheKafka) -> str:
    if os.environ.get("IXION_EXPECT") == "interpreted":
        pytest.skip("runs with the compiled package, see the module")
    return apache_kafka(KAFKA).bootstrap


@pytest.fixture(params=["our_own", "real_kafka"], ids=["ixion", "kafka"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


class Theirs:
    """A librdkafka member that polls on a thread of its own."""

    def __init__(self, bootstrap: str, group: str, strategy: str) -> None:
        self.places: list[TopicPartition] = []
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "partition.assignment.strategy": strategy,
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 100,
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([group])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._consumer.poll(0.05)
            self.places = sorted(TopicPartition(each.topic, each.partition) for each in self._consumer.assignment())

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._consumer.close()


def poll(member: Consumer) -> None:
    hurry(member)
    member.poll(0.05)


@pytest.mark.parametrize("we_lead", [True, False], ids=["led by us", "led by librdkafka"])
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_partitions_are_shared(bootstrap: str, strategy: str, we_lead: bool) -> None:
    group = f"{strategy}-{we_lead}".lower()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(group, PARTITIONS, 1)])[group].result(60)
    every = [TopicPartition(group, number) for number in range(PARTITIONS)]
    settings: dict[str, Any] = {"group": group, "topics": [group], "partition_assignment_strategy": [strategy]}
    theirs = None if we_lead else Theirs(bootstrap, group, strategy)
    try:
        while theirs is not None and theirs.places != every:
            threading.Event().wait(0.05)
        with Consumer(bootstrap, **settings) as ours:
            if theirs is None:
                while ours.assignment() != every:
                    poll(ours)
                theirs = Theirs(bootstrap, group, strategy)
            while sorted([*ours.assignment(), *theirs.places]) != every or not ours.assignment() or not theirs.places:
                poll(ours)
            assert len(ours.assignment()) == len(theirs.places) == PARTITIONS // 2
        while theirs.places != every:  # we have left
            threading.Event().wait(0.05)
    finally:
        if theirs is not None:
            theirs.close()
