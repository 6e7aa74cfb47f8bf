"""A share group on three brokers: leaders, group coordinator and share coordinators are different brokers, and die."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, ShareConsumer

from ixion.language.model.resource_type import ResourceType
from ixion.testing import Cluster
from tests.apis.asking import Asking
from tests.apis.settings import must_set

PATIENCE_S = 60
PARTITIONS = 6


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, {"group.share.record.lock.duration.ms": 15_000}) as made:
        made.create_topic("t", PARTITIONS)
        yield made


def begin_at_the_first_record(cluster: Cluster, group: str) -> None:
    with Asking(cluster.bootstrap.partition(",")[0]) as asking:
        must_set(asking, ResourceType.GROUP, group, {"share.auto.offset.reset": "earliest"})


def write(cluster: Cluster, first: int, count: int) -> set[bytes]:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    values = {b"%d" % number for number in range(first, first + count)}
    for value in values:
        producer.produce("t", value)
    assert producer.flush(PATIENCE_S) == 0
    return values


def read(consumer: Any, wanted: set[bytes]) -> list[bytes]:
    """Until all of them have come; those that came before are accepted."""
    got: list[bytes] = []
    until = time.monotonic() + PATIENCE_S
    while not wanted <= set(got):
        assert time.monotonic() < until, f"{len(wanted - set(got))} records are missing"
        got += [each.value() for each in consumer.poll(0.5) or [] if each.error() is None]
    return got


def test_a_share_group_outlives_every_broker_in_turn(cluster: Cluster) -> None:
    begin_at_the_first_record(cluster, "g")
    consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0})
    consumer.subscribe(["t"])
    accepted: set[bytes] = set()
    written = 0
    for broker in (1, 2, 3):
        values = write(cluster, written, 60)
        written += 60
        got = read(consumer, values)
        assert not accepted & set(got), "what was accepted is not delivered again"
        results = consumer.commit_sync()
        assert all(error is None for error in results.values())
        accepted |= set(got)
        cluster.kill(broker)
        cluster.restart(broker)
        cluster.wait_healthy()
    values = write(cluster, written, 60)
    assert not accepted & set(read(consumer, values))
    consumer.close()
