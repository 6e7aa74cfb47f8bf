"""Delayed records in a queue: they come at their time, and hold up none of those behind them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ixion.clients import Admin, Producer, ShareConsumer
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.topics import NewTopic
from ixion.language.model.resource_type import ResourceType
from ixion.testing import Broker

DELAY_S = 1.5
ROUNDING_S = 0.002  # times of brokers are whole milliseconds
GROUP = {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": "100"}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


def make(bootstrap: str, topic: str, **configs: str) -> None:
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1, configs=settings)]).check()
        admin.alter_configs({Resource(ResourceType.GROUP, topic): GROUP}).check()


def taken(consumer: ShareConsumer[bytes, bytes], count: int) -> dict[bytes, float]:
    """Values with the time of their arrival; each is accepted."""
    found: dict[bytes, float] = {}
    while len(found) < count:
        for record in consumer.poll(1.0):
            assert record.value not in found
            assert record.delivery_count == 1
            found[record.value] = time.monotonic()
        consumer.commit()
    return found


def send(producer: Producer, topic: str, value: bytes, delay_s: float = 0.0) -> float:
    headers = [("x-deliver-after-ms", b"%d" % (delay_s * 1_000))] if delay_s else []
    sent_s = time.monotonic()
    producer.send(topic, value, partition=0, headers=headers).result()
    return sent_s


@pytest.mark.parametrize("target", [False, True])
def test_records_that_wait_for_their_time_hold_up_no_others(bootstrap: str, target: bool) -> None:
    """More of them than a share partition may have in flight."""
    queue = topic = f"jobs-{target}"
    make(bootstrap, queue, **({} if target else {"delivery_delay_mode": "record"}))
    if target:
        topic = f"later-{target}"
        make(bootstrap, topic, delivery_delay_mode="record", delivery_delay_target=queue)
    with Producer(bootstrap) as producer, ShareConsumer(bootstrap, group=queue, topics=[queue]) as consumer:
        for number in range(150):
            send(producer, topic, b"much later %d" % number, 3_600)
        late = {b"late %d" % number: send(producer, topic, b"late %d" % number, DELAY_S) for number in range(3)}
        early = {b"now %d" % number: send(producer, queue, b"now %d" % number) for number in range(20)}
        found = taken(consumer, len(late) + len(early))
    assert found.keys() == late.keys() | early.keys()
    assert min(found[value] - sent_s for value, sent_s in late.items()) >= DELAY_S - ROUNDING_S


def test_a_topic_with_one_delay_for_all_shows_a_queue_what_is_due(bootstrap: str) -> None:
    make(bootstrap, "fixed", delivery_delay_mode="fixed", delivery_delay_ms=str(int(DELAY_S * 1_000)))
    with Producer(bootstrap) as producer, ShareConsumer(bootstrap, group="fixed", topics=["fixed"]) as consumer:
        sent = {b"%d" % number: send(producer, "fixed", b"%d" % number) for number in range(3)}
        found = taken(consumer, len(sent))
    assert min(found[value] - sent_s for value, sent_s in sent.items()) >= DELAY_S - ROUNDING_S
