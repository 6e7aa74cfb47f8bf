"""Behaviours that kafka-python and aiokafka test of their consumers, thought through again for ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from ixion.clients import Consumer, Producer, RebalanceListener, TopicPartition, aio
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.core.consumer.errors import ConsumerUseError
from ixion.clients.core.consumer.subscription import NotAssignedError
from ixion.testing import Broker
from tests.clients.asking import fetch_offsets

pytestmark = pytest.mark.timeout(120)
NAMES = count()
QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 6_000}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings={"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"cases-{next(NAMES)}"
    broker.create_topic(name, 1)
    with Producer(broker.bootstrap) as producer:
        for number in range(5):
            producer.send(name, b"%d" % number, partition=0)
    return name


class Heard(RebalanceListener):
    def __init__(self, raises: str = "") -> None:
        self.kinds: list[str] = []
        self._raises = raises

    def hear(self, kind: str, partitions: Sequence[TopicPartition]) -> object:
        self.kinds.append(kind)
        if kind == self._raises:
            raise LookupError(kind)
        return None


def read(consumer: Consumer, number: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < number:
        found += [record.value for record in consumer.poll(10)]
    return found


@pytest.mark.parametrize("raises", [False, True])
def test_leaving_a_block_commits_unless_an_exception_does_it(broker: Broker, topic: str, raises: bool) -> None:
    """The record that the exception is about comes again."""
    try:
        with Consumer(broker.bootstrap, group=topic, topics=[topic], **QUICK) as consumer:
            for record in consumer:
                if record.offset == 2:
                    if raises:
                        raise LookupError
                    break
    except LookupError:
        pass
    with Consumer(broker.bootstrap, group=topic, topics=[topic], **QUICK) as consumer:
        assert read(consumer, 1)[0] == (b"0" if raises else b"3")


def test_on_asyncio_too(broker: Broker, topic: str) -> None:
    async def fail() -> None:
        async with aio.Consumer(broker.bootstrap, group=topic, topics=[topic], **QUICK) as consumer:
            async for _ in consumer:
                raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(fail())
    assert TopicPartition(topic, 0) not in fetch_offsets(broker.bootstrap, topic)


def test_unsubscribing_gives_up_partitions_and_leaves_the_group(broker: Broker, topic: str) -> None:
    listener = Heard()
    place = TopicPartition(topic, 0)
    with Consumer(broker.bootstrap, group=topic, enable_auto_commit=False, **QUICK) as consumer:
        consumer.subscribe([topic], listener)
        read(consumer, 5)
        consumer.unsubscribe()
        assert listener.kinds == ["assigned", "revoked"]
        assert (consumer.assignment(), consumer.subscription()) == ([], [])
        with pytest.raises(ConsumerUseError, match="nothing to read"):
            consumer.poll(0)
        consumer.unsubscribe()  # harmless
        with Consumer(broker.bootstrap, group=topic, topics=[topic], enable_auto_commit=False, **QUICK) as other:
            assert read(other, 1) != []  # it need not wait for the end of a session
        consumer.assign([place])  # partitions of its own choice are possible now
        consumer.seek(place, 4)
        assert read(consumer, 1) == [b"4"]
        consumer.unsubscribe()
        consumer.subscribe([topic])
        assert read(consumer, 1) != []


def test_unsubscribing_on_asyncio(broker: Broker, topic: str) -> None:
    async def work() -> None:
        async with aio.Consumer(broker.bootstrap, group=topic, topics=[topic], **QUICK) as consumer:
            while not await consumer.poll(10):
                pass
            await consumer.unsubscribe()
            assert consumer.assignment() == []
            await consumer.assign([TopicPartition(topic, 0)])
            await consumer.seek(TopicPartition(topic, 0), 3)
            records: list[ConsumerRecord] = []
            while not records:
                records = await consumer.poll(10)
            assert records[0].offset == 3

    asyncio.run(work())


@pytest.mark.parametrize("raises", ["assigned", "revoked"])
def test_a_listener_that_raises_is_reported_and_the_group_continues(broker: Broker, topic: str, raises: str) -> None:
    listener = Heard(raises)
    consumer = Consumer(broker.bootstrap, group=topic, **QUICK)
    consumer.subscribe([topic], listener)
    if raises == "assigned":
        with pytest.raises(LookupError):
            read(consumer, 1)
    assert read(consumer, 5) == [b"%d" % number for number in range(5)]
    if raises == "revoked":
        with pytest.raises(LookupError):
            consumer.close()
    else:
        consumer.close()
    assert listener.kinds == ["assigned", "revoked"]
    with Consumer(broker.bootstrap, group=topic, topics=[topic], **QUICK) as other:
        while not other.assignment():
            other.poll(0.1)  # the member that failed has left, so nothing is waited for


class Broken:
    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        raise LookupError

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        raise LookupError


def test_an_interceptor_that_raises_is_logged(broker: Broker, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    called: list[object] = []
    with (
        caplog.at_level(logging.ERROR, "ixion.clients"),
        Consumer(broker.bootstrap, group=topic, topics=[topic], interceptors=[Broken()], **QUICK) as consumer,
    ):
        assert len(read(consumer, 5)) == 5
        consumer.commit_async(on_commit=lambda offsets, error: called.append(error))
        while not called:
            consumer.poll(0.05)
    assert called == [None]
    assert {record.getMessage() for record in caplog.records} == {
        "on_consume of an interceptor raised",
        "on_commit of an interceptor raised",
    }


def test_what_is_not_assigned_cannot_be_moved_or_paused(broker: Broker, topic: str) -> None:
    place, other = TopicPartition(topic, 0), TopicPartition(topic, 7)
    with Consumer(broker.bootstrap) as consumer:
        consumer.assign([place])
        for call in (consumer.seek_to_beginning, consumer.seek_to_end, consumer.pause, consumer.resume):
            with pytest.raises(NotAssignedError):
                call(other)
        with pytest.raises(NotAssignedError):
            consumer.seek(other, 1)
        with pytest.raises(NotAssignedError):
            consumer.position(other)
        with pytest.raises(ValueError, match="an offset is -1"):
            consumer.seek(place, -1)


def test_records_of_partitions_that_were_given_up_are_not_handed_out(broker: Broker, topic: str) -> None:
    broker.create_topic(f"{topic}-other", 1)
    with Producer(broker.bootstrap) as producer:
        producer.send(f"{topic}-other", b"other")
    with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in consumer.poll(10, 1)] == [b"0"]  # four more are here already
        consumer.assign([TopicPartition(f"{topic}-other", 0)])
        assert read(consumer, 1) == [b"other"]


def test_a_session_that_ends_before_a_heartbeat_is_refused() -> None:
    with pytest.raises(ValueError, match=r"heartbeat_interval_ms is 6000; it must be less than session_timeout_ms"):
        Consumer("127.0.0.1:9092", session_timeout_ms=6_000, heartbeat_interval_ms=6_000)


def test_without_retries_there_is_no_idempotence() -> None:
    Producer("127.0.0.1:9092", retries=0).close()
    with pytest.raises(ValueError, match="enable_idempotence needs acks='all', retries"):
        Producer("127.0.0.1:9092", retries=0, enable_idempotence=True)
    with pytest.raises(ValueError, match="transactional_id needs"):
        Producer("127.0.0.1:9092", retries=0, transactional_id="t")
